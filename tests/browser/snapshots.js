// Compares screenshots of pages by their content.
//
// They are compared at a quarter of their width, so that layout and colours count, but not font rendering or the time of day. Only content
// counts: most of a page is background, which is the same on every page.
import { PNG } from "pngjs";

const SHRINK = 4;
// Minimum difference of a channel that counts, of 255.
const CHANNEL_DIFFERENCE_MIN = 24;
// The commonest colours of a picture are backgrounds: those of the page, of its cards and of wells.
const BACKGROUNDS = 3;

// The mean colour of each square of SHRINK by SHRINK pixels.
function small(bytes) {
  const large = PNG.sync.read(bytes);
  const picture = new PNG({ width: Math.floor(large.width / SHRINK), height: Math.floor(large.height / SHRINK) });
  for (let y = 0; y < picture.height; y++) {
    for (let x = 0; x < picture.width; x++) {
      for (let channel = 0; channel < 4; channel++) {
        let sum = 0;
        for (let dy = 0; dy < SHRINK; dy++) {
          for (let dx = 0; dx < SHRINK; dx++) sum += large.data[((y * SHRINK + dy) * large.width + x * SHRINK + dx) * 4 + channel];
        }
        // fewer shades, so that the squares of a background have one colour
        picture.data[(y * picture.width + x) * 4 + channel] = channel === 3 ? 255 : Math.min(255, Math.round(sum / SHRINK ** 2 / 8) * 8);
      }
    }
  }
  return picture;
}

function colour({ data }, at) {
  return (data[at] << 16) | (data[at + 1] << 8) | data[at + 2];
}

function backgrounds(picture) {
  const counts = new Map();
  for (let at = 0; at < picture.data.length; at += 4) counts.set(colour(picture, at), (counts.get(colour(picture, at)) ?? 0) + 1);
  const commonest = [...counts].sort(([, a], [, b]) => b - a).slice(0, BACKGROUNDS);
  return new Set(commonest.map(([known]) => known));
}

// The share of the pixels with content in one of two PNG files that differ; 1 if the sizes differ.
export function difference(keptBytes, seenBytes) {
  const [kept, seen] = [small(keptBytes), small(seenBytes)];
  if (kept.width !== seen.width || kept.height !== seen.height) return 1;
  const [ofKept, ofSeen] = [backgrounds(kept), backgrounds(seen)];
  let [content, differing] = [0, 0];
  for (let at = 0; at < kept.data.length; at += 4) {
    if (ofKept.has(colour(kept, at)) && ofSeen.has(colour(seen, at))) continue;
    content += 1;
    const differs = [0, 1, 2].some((channel) => Math.abs(kept.data[at + channel] - seen.data[at + channel]) > CHANNEL_DIFFERENCE_MIN);
    if (differs) differing += 1;
  }
  return content === 0 ? 0 : differing / content;
}
