//! Logs of containers: links to them, which collectors follow, and how large they may get ([`rotation`]).

pub(crate) mod rotation;

use crate::layout::Layout;

/// Removes links that lead nowhere.
pub(crate) async fn remove_dangling(layout: &Layout) {
    let Ok(mut entries) = tokio::fs::read_dir(layout.container_links()).await else { return };
    while let Ok(Some(entry)) = entries.next_entry().await {
        // Of a container whose log was moved aside a moment ago the folder is still there.
        let target = tokio::fs::read_link(entry.path()).await;
        let leads = target.is_ok_and(|target| target.parent().is_some_and(std::path::Path::exists));
        if !leads {
            tokio::fs::remove_file(entry.path()).await.unwrap_or_default();
        }
    }
}
