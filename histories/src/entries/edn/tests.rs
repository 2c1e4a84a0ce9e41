//! What the parser makes of every kind of form.

use proptest::prelude::*;

use super::*;

fn parse(text: &str) -> Value<'_> {
    Value::parse(text).unwrap_or_else(|mistake| panic!("{text}: {mistake}"))
}

fn text(text: &str) -> Value<'_> {
    Value::Text(text.into())
}

#[test]
fn a_word_has_no_control_characters() {
    for word in [":a\x16", "a\x7f", ":é\u{9b}b", "x\u{202e}", "\x01"] {
        let mistake = Value::parse(word).unwrap_err();
        assert_eq!(mistake.message, "a control character in a word", "{word:?}");
    }
    assert_eq!(
        parse(":été]".trim_end_matches(']')),
        Value::Keyword("été".into())
    );
    assert_eq!(parse("[:é :b]"), parse("[ :é,:b ]"));
}

#[test]
fn scalars() {
    assert_eq!(parse("nil"), Value::Nil);
    assert_eq!(parse(" true ,"), Value::Bool(true));
    assert_eq!(parse("false"), Value::Bool(false));
    assert_eq!(parse(":a/b.c"), Value::Keyword("a/b.c".into()));
    for (written, number) in [
        ("0", 0),
        ("-0", 0),
        ("+7", 7),
        ("12N", 12),
        ("-9223372036854775808", i64::MIN),
        ("9223372036854775807", i64::MAX),
    ] {
        assert_eq!(parse(written), Value::Integer(number));
    }
}

#[test]
fn what_has_no_variant_is_kept_as_it_is_written() {
    for written in [
        "9223372036854775808",
        "010",
        "1.5",
        "1/2",
        "1e9M",
        "+",
        "-",
        "--1",
        "-+1",
        "nilly",
        "some.symbol/x",
        "#{1 2 {:a [\"}\"]}}",
        "#inst \"2020-01-01T00:00:00Z\"",
        "#its/tag {:a 1}",
        "#object[java.lang.Object 0x1 \"x\"]",
        "#error {:a #a #b 1}",
        "##NaN",
        "\\a",
        "\\newline",
        "\\{",
        "\\\"",
        "\\ß",
    ] {
        assert_eq!(parse(written), Value::Other(written.into()), "{written}");
    }
    assert_eq!(
        parse("[\\} \\a]"),
        Value::List(vec![Value::Other("\\}".into()), Value::Other("\\a".into())])
    );
}

#[test]
fn strings_borrow_unless_an_escape_forces_a_copy() {
    assert!(matches!(
        parse("\"ä; ] #_\n\""),
        Value::Text(Cow::Borrowed("ä; ] #_\n"))
    ));
    let escapes = r#""\n\t\r\b\f\\\"\u00e4\uD83D\uDE00!""#;
    assert!(
        matches!(parse(escapes), Value::Text(Cow::Owned(text)) if text == "\n\t\r\x08\x0c\\\"ä😀!")
    );
    for (wrong, at) in [
        (r#""a\q""#, 2),
        (r#""\u12""#, 1),
        (r#""\u+123""#, 1),
        (r#""\uD83D""#, 1),
        (r#""\uD83D\u0041""#, 1),
    ] {
        assert_eq!(Value::parse(wrong).unwrap_err().at, at, "{wrong}");
    }
}

#[test]
fn collections_records_comments_and_discards() {
    let one_two = Value::List(vec![Value::Integer(1), Value::Integer(2)]);
    for written in [
        "[1 2]",
        "(1,2)",
        "[1;2]\n 2]",
        "[#_ 0 1 #_[3 #_4] 2 #_#_ 5 6]",
        "#_#_ a b #_ #x #y c [1 2]",
        "; first\n[1 2] ; last",
    ] {
        assert_eq!(parse(written), one_two, "{written}");
    }
    let map = Value::Map(vec![(Value::Keyword("a".into()), one_two)]);
    for written in [
        "{:a [1 2]}",
        "#jepsen.history.Op{:a [1 2]}",
        "#jepsen.history.Op {:a [1 2]}",
        "#knossos.op.Op #_x {#_#_ :b 1 :a (1 2)}",
    ] {
        assert_eq!(parse(written), map, "{written}");
    }
    assert_eq!(map.get("a"), parse("{:a [1 2]}").get("a"));
    assert_eq!(parse("[\"\" {} ()]"), {
        Value::List(vec![text(""), Value::Map(vec![]), Value::List(vec![])])
    });
}

#[test]
fn mistakes_say_where_and_what() {
    for (wrong, at, message) in [
        ("[1 2}", 4, "expected `]`, found `}`"),
        ("{:a}", 3, "a key without a value"),
        (")", 0, "`)` closes nothing here"),
        ("[#_]", 3, "`]` closes nothing here"),
        (":", 0, "a keyword without a name"),
        ("# a", 1, "`#` is followed by no tag"),
        ("#\"a\"", 1, "`#` is followed by no tag"),
        ("1 2", 2, "there is more after the value"),
        ("[1", 2, "the text ends too early"),
        ("\"a", 2, "the text ends too early"),
        ("", 0, "the text ends too early"),
        ("#_ 1", 4, "the text ends too early"),
    ] {
        let mistake = Value::parse(wrong).unwrap_err();
        assert_eq!((mistake.at, &*mistake.message), (at, message), "{wrong}");
    }
}

#[test]
fn deep_nesting_is_an_error_and_no_overflow() {
    let nested =
        |open: &str, close: &str, depth: usize| open.repeat(depth) + "1" + &close.repeat(depth);
    for (open, close) in [
        ("[", "]"),
        ("(", ")"),
        ("{:a ", "}"),
        ("#{", "}"),
        ("#a [", "]"),
        ("#a.B {1 ", "}"),
    ] {
        let whole = format!("[{} 1]", nested(open, close, DEEPEST - 1));
        assert!(Value::parse(&whole).is_ok(), "{open}");
        let mistake = Value::parse(&nested(open, close, 1_000_000)).unwrap_err();
        assert_eq!(
            mistake.message, "more than 100 forms in each other",
            "{open}"
        );
    }
    assert!(Value::parse(&"#_ #a ".repeat(1_000_000)).is_err());
    // These nest nothing, however many there are.
    parse(&("#_ ".repeat(1_000_000) + &"1 ".repeat(1_000_001)));
    parse(&("#a ".repeat(1_000_000) + "1"));
}

/// Any value of those that have a variant.
fn value() -> impl Strategy<Value = Value<'static>> {
    let scalar = prop_oneof![
        Just(Value::Nil),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Integer),
        any::<String>().prop_map(|text| Value::Text(text.into())),
        "[\"\\\\\n\r\t{};ä😀 ]{0,6}".prop_map(|text| Value::Text(text.into())),
        "[a-z][a-z0-9.?!*/-]{0,5}".prop_map(|name| Value::Keyword(name.into())),
        prop::sample::select(vec!["1.5", "#inst \"x\"", "#{1 [2]}", "sym", "\\a"])
            .prop_map(|other| Value::Other(other.into())),
    ];
    scalar.prop_recursive(4, 32, 4, |inner| {
        let pair = (inner.clone(), inner.clone());
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(Value::List),
            prop::collection::vec(pair, 0..4).prop_map(Value::Map),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_printed_is_parsed_as_the_same(value in value()) {
        let printed = value.to_string();
        prop_assert_eq!(Value::parse(&printed).unwrap(), value);
    }

    /// Skipping a form and parsing it have to agree on where it ends, and on whether more is needed.
    #[test]
    fn any_text_is_parsed_or_refused(text in "[\\[\\](){}\"\\\\;#_:a.B1N/ \n,ä-]{0,24}", whole in any::<bool>()) {
        let mut skipping = Parser::new(&text, 0, whole);
        let mut parsing = Parser::new(&text, 0, whole);
        let skipped = skipping.space().and_then(|()| skipping.skip());
        let parsed = parsing.space().and_then(|()| parsing.value());
        match (skipped, parsed) {
            (Ok(()), Ok(_)) => prop_assert_eq!(skipping.at(), parsing.at()),
            (Ok(()), Err(stop)) => prop_assert!(matches!(stop, Stop::Wrong(_)), "{:?}", stop),
            (Err(Stop::Ends), Err(_)) | (Err(Stop::Wrong(_)), Err(_)) => {}
            (skipped, parsed) => prop_assert!(false, "{:?} {:?}", skipped, parsed),
        }
    }

    /// What is known of a text is a form or not whatever follows.
    #[test]
    fn a_form_that_is_whole_stays_so(value in value(), at in any::<prop::sample::Index>()) {
        let printed = value.to_string() + " ";
        let mut at = at.index(printed.len() - 1);
        while !printed.is_char_boundary(at) {
            at -= 1;
        }
        let mut parser = Parser::new(&printed[..at], 0, false);
        prop_assert!(matches!(parser.value(), Err(Stop::Ends)));
        let mut parser = Parser::new(&printed, 0, false);
        prop_assert_eq!(parser.value().unwrap(), value);
    }
}
