//! A gate between a client and a server: while it is shut, what is said is held back, and comes when it opens.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A gate, open until it is shut.
pub struct Gate {
    /// Where clients connect.
    pub address: SocketAddr,
    requests: watch::Sender<bool>,
    answers: watch::Sender<bool>,
}

impl Gate {
    /// A gate before a server.
    pub async fn before(server: SocketAddr) -> Gate {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (requests, asks) = watch::channel(true);
        let (answers, tells) = watch::channel(true);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if let Ok(server) = TcpStream::connect(server).await {
                    let (from_client, to_client) = client.into_split();
                    let (from_server, to_server) = server.into_split();
                    tokio::spawn(pass(from_client, to_server, asks.clone()));
                    tokio::spawn(pass(from_server, to_client, tells.clone()));
                }
            }
        });
        Gate {
            address,
            requests,
            answers,
        }
    }

    /// From now on nothing gets to the server.
    pub fn shut_requests(&self) {
        self.requests.send_replace(false);
    }

    /// From now on nothing comes from the server.
    pub fn shut_answers(&self) {
        self.answers.send_replace(false);
    }

    /// Lets through what was held back, and all that follows.
    pub fn open(&self) {
        self.requests.send_replace(true);
        self.answers.send_replace(true);
    }
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut open: watch::Receiver<bool>) {
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        if open.wait_for(|open| *open).await.is_err() {
            return;
        }
        if to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}
