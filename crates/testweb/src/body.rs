//! Response bodies: repeated segments of bytes, sent in chunks with delays.

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

/// A body that is being sent. It holds the record of the hit, which is closed when the body is sent or dropped.
pub(crate) struct ResponseBody {
    segments: VecDeque<(Bytes, u64)>,
    hit: Option<OpenHit>,
    pace: Option<Pace>,
    delay: Option<Pin<Box<Sleep>>>,
    content_length: ContentLength,
}

/// Whether the head contains the length of the body.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContentLength {
    /// The head contains the exact length.
    Exact,
    /// The head contains no length, or another one.
    Other,
}

impl ResponseBody {
    pub(crate) fn new(
        segments: Vec<(Bytes, u64)>,
        pace: Option<Pace>,
        content_length: ContentLength,
        mut hit: OpenHit,
    ) -> Self {
        let segments: VecDeque<_> =
            segments.into_iter().filter(|(bytes, times)| !bytes.is_empty() && *times > 0).collect();
        if segments.is_empty() {
            hit.mark_complete();
        }
        Self { segments, hit: Some(hit), pace, delay: None, content_length }
    }

    /// An empty body whose hit is recorded elsewhere.
    pub(crate) fn unrecorded() -> Self {
        Self {
            segments: VecDeque::new(),
            hit: None,
            pace: None,
            delay: None,
            content_length: ContentLength::Exact,
        }
    }

    /// The next chunk: one repetition of the first segment, or a part of it at a slower pace.
    fn next_chunk(&mut self) -> Option<Bytes> {
        let (bytes, times) = self.segments.front_mut()?;
        let chunk_bytes = self.pace.map_or(usize::MAX, |pace| pace.chunk_bytes);
        if chunk_bytes < bytes.len() && *times == 1 {
            return Some(bytes.split_to(chunk_bytes));
        }
        let chunk = bytes.slice(..chunk_bytes.min(bytes.len()));
        *times -= 1;
        if *times == 0 {
            self.segments.pop_front();
        }
        Some(chunk)
    }

    fn length(&self) -> Option<u64> {
        self.segments.iter().try_fold(0_u64, |sum, (bytes, times)| {
            (bytes.len() as u64).checked_mul(*times).and_then(|more| sum.checked_add(more))
        })
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if let Some(delay) = &mut self.delay {
            ready!(delay.as_mut().poll(context));
            self.delay = None;
        }
        let Some(chunk) = self.next_chunk() else {
            return Poll::Ready(None);
        };
        let is_last = self.segments.is_empty();
        if let Some(hit) = &mut self.hit {
            hit.add_bytes(chunk.len());
            if is_last {
                hit.mark_complete();
            }
        }
        self.delay = self.pace.map(|pace| Box::pin(sleep(pace.delay)));
        Poll::Ready(Some(Ok(Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        self.segments.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        match self.length() {
            Some(length) if self.content_length == ContentLength::Exact => SizeHint::with_exact(length),
            _ => SizeHint::default(),
        }
    }
}

/// The delay of a slow answer. Nothing else in the test web sleeps.
pub(crate) fn sleep(delay: Duration) -> Sleep {
    tokio::time::sleep(delay)
}
