//! A proxy in front of the database, which can delay data and cut its connections.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::world::World;

/// Maximum number of bytes per forwarded chunk.
const CHUNK_BYTES: usize = 64 * 1024;

pub(crate) struct Proxy {
    address: SocketAddr,
    target: SocketAddr,
    /// Delay in each direction.
    delay: Duration,
    cut: CancellationToken,
    tasks: JoinSet<()>,
}

impl Proxy {
    /// Routes the connections of later programs through a proxy.
    pub(crate) async fn before(world: &mut World, delay: Duration) -> Self {
        let mut url = url::Url::parse(world.database_url.as_deref().unwrap()).unwrap();
        let target = SocketAddr::from(([127, 0, 0, 1], url.port().unwrap()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        url.set_port(Some(address.port())).unwrap();
        world.database_url = Some(url.to_string());
        let mut proxy = Self { address, target, delay, cut: CancellationToken::new(), tasks: JoinSet::new() };
        proxy.serve(listener);
        proxy
    }

    fn serve(&mut self, listener: TcpListener) {
        let (target, delay, cut) = (self.target, self.delay, self.cut.clone());
        self.tasks.spawn(async move {
            // dropping the set ends the connections
            let mut connections = JoinSet::new();
            let accepting = async {
                loop {
                    let (client, _) = listener.accept().await.unwrap();
                    connections.spawn(async move {
                        let server = TcpStream::connect(target).await.unwrap();
                        let ((from_client, to_client), (from_server, to_server)) =
                            (client.into_split(), server.into_split());
                        // the two ends of the connection handle errors
                        tokio::select! {
                            _ = forward(from_client, to_server, delay) => {}
                            _ = forward(from_server, to_client, delay) => {}
                        }
                    });
                }
            };
            let _: Option<()> = cut.run_until_cancelled(accepting).await;
        });
    }

    /// Breaks every connection and refuses new ones.
    pub(crate) async fn cut(&mut self) {
        self.cut.cancel();
        while self.tasks.join_next().await.is_some() {}
    }

    pub(crate) async fn restore(&mut self) {
        self.cut = CancellationToken::new();
        let listener = TcpListener::bind(self.address).await.unwrap();
        self.serve(listener);
    }
}

async fn forward(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    delay: Duration,
) -> std::io::Result<()> {
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let length = from.read(&mut chunk).await?;
        if length == 0 {
            return Ok(());
        }
        tokio::time::sleep(delay).await;
        to.write_all(&chunk[..length]).await?;
    }
}
