//! document: read a document, work, and write it, under the lock.

use async_trait::async_trait;

use super::Workload;
use crate::client::{Client, Grant, Pending, RecordingFailed};

/// The workload.
pub struct Document;

#[async_trait(?Send)]
impl Workload for Document {
    fn name(&self) -> &'static str {
        "document"
    }

    fn summary(&self) -> &'static str {
        "reads a document, works, and writes it, under the lock"
    }

    fn points(&self) -> &'static [&'static str] {
        nemesis::POINTS
    }

    async fn round(&self, client: &mut Client) -> Result<(), RecordingFailed> {
        let Some(grant) = client.acquire().await? else {
            client.pause(client.workload().retry_ms).await;
            return Ok(());
        };
        client.point("after-acquire", &grant).await?;
        let mut pending = None;
        if !client.has_lost(&grant)? {
            client.begin_work(&grant)?;
            pending = update(client, &grant).await?;
            client.end_work(&grant)?;
        }
        client.point("before-release", &grant).await?;
        client.release(&grant, pending).await?;
        client.point("after-release", &grant).await?;
        client.pause(client.workload().rest_ms).await;
        Ok(())
    }
}

/// One read-modify-write. Whoever knows that the lock is lost stops; whoever was not told goes on.
async fn update(client: &mut Client, grant: &Grant) -> Result<Option<Pending>, RecordingFailed> {
    client.point("before-read", grant).await?;
    if client.has_lost(grant)? {
        return Ok(None);
    }
    let Some((version, _)) = client.read(grant).await? else {
        return Ok(None);
    };
    client.point("after-read", grant).await?;
    client.work(grant, client.workload().work_ms).await?;
    client.point("before-write", grant).await?;
    if client.has_lost(grant)? {
        return Ok(None);
    }
    let pending = client.write(grant, version).await?;
    client.point("after-write", grant).await?;
    Ok(pending)
}
