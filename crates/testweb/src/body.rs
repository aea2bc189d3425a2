//! Bodies as they leave: stretches of bytes, each repeated so many times, by chunks and with pauses.

use std::{
    collections::VecDeque,
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use hyper::body::{Body, Bytes, Frame, SizeHint};
use tokio::time::Sleep;

use crate::{answer::Pace, log::OpenHit};

/// A body on its way. It carries the hit's record, which closes when the body has been sent or given up.
pub(crate) struct Outgoing {
    stretches: VecDeque<(Bytes, u64)>,
    hit: Option<OpenHit>,
    pace: Option<Pace>,
    pause: Option<Pin<Box<Sleep>>>,
    announced: Announced,
}

/// What the head says of the body's length.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Announced {
    /// Its true length.
    Truth,
    /// Nothing, or something else.
    Otherwise,
}

impl Outgoing {
    pub(crate) fn new(
        stretches: Vec<(Bytes, u64)>,
        pace: Option<Pace>,
        announced: Announced,
        mut hit: OpenHit,
    ) -> Self {
        let stretches: VecDeque<_> =
            stretches.into_iter().filter(|(bytes, times)| !bytes.is_empty() && *times > 0).collect();
        if stretches.is_empty() {
            hit.mark_complete();
        }
        Self { stretches, hit: Some(hit), pace, pause: None, announced }
    }

    /// An empty body whose hit is recorded by others.
    pub(crate) fn unrecorded() -> Self {
        Self { stretches: VecDeque::new(), hit: None, pace: None, pause: None, announced: Announced::Truth }
    }

    /// The next chunk: one repetition of the first stretch, or a part of it where the pace is slower.
    fn next_chunk(&mut self) -> Option<Bytes> {
        let (bytes, times) = self.stretches.front_mut()?;
        let chunk_bytes = self.pace.map_or(usize::MAX, |pace| pace.chunk_bytes);
        if chunk_bytes < bytes.len() && *times == 1 {
            return Some(bytes.split_to(chunk_bytes));
        }
        let chunk = bytes.slice(..chunk_bytes.min(bytes.len()));
        *times -= 1;
        if *times == 0 {
            self.stretches.pop_front();
        }
        Some(chunk)
    }

    fn length(&self) -> Option<u64> {
        self.stretches.iter().try_fold(0_u64, |sum, (bytes, times)| {
            (bytes.len() as u64).checked_mul(*times).and_then(|more| sum.checked_add(more))
        })
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if let Some(pause) = &mut self.pause {
            ready!(pause.as_mut().poll(context));
            self.pause = None;
        }
        let Some(chunk) = self.next_chunk() else {
            return Poll::Ready(None);
        };
        let is_last = self.stretches.is_empty();
        if let Some(hit) = &mut self.hit {
            hit.add_bytes(chunk.len());
            if is_last {
                hit.mark_complete();
            }
        }
        self.pause = self.pace.map(|pace| Box::pin(sleep(pace.pause)));
        Poll::Ready(Some(Ok(Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        self.stretches.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        match self.length() {
            Some(length) if self.announced == Announced::Truth => SizeHint::with_exact(length),
            _ => SizeHint::default(),
        }
    }
}

/// Slowness is what was asked for here; nothing else in the test web waits for a clock.
pub(crate) fn sleep(pause: Duration) -> Sleep {
    tokio::time::sleep(pause)
}
