//! Compresses bodies with gzip and brotli, and makes decompression bombs. Brotli needs the feature `brotli`.

#[cfg(feature = "brotli")]
use std::io::Read;
use std::io::Write;

use flate2::{Compress, Compression, Crc, FlushCompress, write::GzEncoder};
use hyper::body::Bytes;

/// Decoded size of the repeated block of a bomb: 10 GiB take 10,240 blocks.
const BOMB_BLOCK_BYTES: u64 = 1024 * 1024;

/// Brotli window of 4 MiB. The quality below is usual for servers that compress a file once.
#[cfg(feature = "brotli")]
const BROTLI_WINDOW_LOG2: u32 = 22;
#[cfg(feature = "brotli")]
const BROTLI_QUALITY: u32 = 9;
#[cfg(feature = "brotli")]
const BROTLI_BUFFER_BYTES: usize = 4096;

pub(crate) fn gzip(body: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(body).expect("writing to a vector cannot fail");
    encoder.finish().expect("writing to a vector cannot fail").into()
}

#[cfg(feature = "brotli")]
pub(crate) fn brotli(body: &[u8]) -> Bytes {
    brotli_from(body)
}

#[cfg(feature = "brotli")]
pub(crate) fn brotli_bomb(decoded_bytes: u64) -> Bytes {
    brotli_from(std::io::repeat(b' ').take(decoded_bytes))
}

#[cfg(feature = "brotli")]
fn brotli_from(body: impl Read) -> Bytes {
    let mut coded = Vec::new();
    brotli::CompressorReader::new(body, BROTLI_BUFFER_BYTES, BROTLI_QUALITY, BROTLI_WINDOW_LOG2)
        .read_to_end(&mut coded)
        .expect("encoding from memory to memory");
    coded.into()
}

/// One valid gzip stream as segments: a header, a repeated flushed deflate block, a last block, and the trailer. The block can be repeated,
/// because a full flush ends on a byte boundary and resets the window.
pub(crate) fn gzip_bomb(decoded_bytes: u64) -> Vec<(Bytes, u64)> {
    let blocks = decoded_bytes / BOMB_BLOCK_BYTES;
    let rest = decoded_bytes % BOMB_BLOCK_BYTES;
    let header = Bytes::from_static(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]);
    let mut trailer = Vec::new();
    trailer.extend(crc_of_spaces(blocks, rest).to_le_bytes());
    let size_modulo = u32::try_from(decoded_bytes & u64::from(u32::MAX)).expect("masked to 32 bits");
    trailer.extend(size_modulo.to_le_bytes());
    vec![
        (header, 1),
        (deflated_spaces(BOMB_BLOCK_BYTES, FlushCompress::Full), blocks),
        (deflated_spaces(rest, FlushCompress::Finish), 1),
        (trailer.into(), 1),
    ]
}

fn deflated_spaces(count: u64, flush: FlushCompress) -> Bytes {
    let spaces = vec![b' '; usize::try_from(count).expect("at most one block")];
    let mut coded = Vec::with_capacity(64 * 1024);
    Compress::new(Compression::best(), false)
        .compress_vec(&spaces, &mut coded, flush)
        .expect("deflating into a large enough buffer");
    coded.into()
}

fn crc_of_spaces(blocks: u64, rest: u64) -> u32 {
    let block = crc_of(BOMB_BLOCK_BYTES);
    let mut whole = Crc::new();
    for _ in 0..blocks {
        whole.combine(&block);
    }
    whole.combine(&crc_of(rest));
    whole.sum()
}

fn crc_of(count: u64) -> Crc {
    let mut crc = Crc::new();
    crc.update(&vec![b' '; usize::try_from(count).expect("at most one block")]);
    crc
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn flat(segments: Vec<(Bytes, u64)>) -> Vec<u8> {
        segments.into_iter().flat_map(|(bytes, times)| (0..times).flat_map(move |_| bytes.to_vec())).collect()
    }

    #[test]
    fn a_gzip_bomb_is_one_small_valid_stream() {
        let decoded = 5 * BOMB_BLOCK_BYTES + 17;
        let wire = flat(gzip_bomb(decoded));
        let mut out = Vec::new();
        flate2::read::GzDecoder::new(&wire[..]).read_to_end(&mut out).unwrap();
        assert_eq!(out.len() as u64, decoded);
        assert!(out.iter().all(|byte| *byte == b' '));
        assert!((wire.len() as u64) < decoded / 500, "{} bytes on the wire", wire.len());
    }

    #[cfg(feature = "brotli")]
    #[test]
    fn a_brotli_bomb_decodes_to_the_requested_size() {
        let wire = brotli_bomb(BOMB_BLOCK_BYTES);
        let mut out = Vec::new();
        brotli::Decompressor::new(&wire[..], 4096).read_to_end(&mut out).unwrap();
        assert_eq!(out.len() as u64, BOMB_BLOCK_BYTES);
        assert!(wire.len() < 1024, "{} bytes on the wire", wire.len());
    }

    #[cfg(feature = "brotli")]
    #[test]
    fn both_codings_restore_the_body() {
        let mut out = Vec::new();
        flate2::read::GzDecoder::new(&gzip(b"a manifest")[..]).read_to_end(&mut out).unwrap();
        brotli::Decompressor::new(&brotli(b"a manifest")[..], 4096).read_to_end(&mut out).unwrap();
        assert_eq!(out, b"a manifesta manifest");
    }
}
