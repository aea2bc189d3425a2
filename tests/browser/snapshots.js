// Compares pages with small screenshots that a person has reviewed.
//
// A screenshot has a quarter of the width of the page, so that layout and colours count, but not font rendering or the time
// of day.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import pixelmatch from "pixelmatch";
import { PNG } from "pngjs";

const SHRINK = 4;
// Minimum colour difference that counts, from 0 to 1.
const THRESHOLD = 0.25;

// The mean colour of each square of SHRINK by SHRINK pixels.
export function small(bytes) {
  const large = PNG.sync.read(bytes);
  const picture = new PNG({ width: Math.floor(large.width / SHRINK), height: Math.floor(large.height / SHRINK) });
  for (let y = 0; y < picture.height; y++) {
    for (let x = 0; x < picture.width; x++) {
      for (let channel = 0; channel < 4; channel++) {
        let sum = 0;
        for (let dy = 0; dy < SHRINK; dy++) {
          for (let dx = 0; dx < SHRINK; dx++) sum += large.data[((y * SHRINK + dy) * large.width + x * SHRINK + dx) * 4 + channel];
        }
        // fewer shades compress better, and the difference is not visible
        picture.data[(y * picture.width + x) * 4 + channel] = channel === 3 ? 255 : Math.min(255, Math.round(sum / SHRINK ** 2 / 8) * 8);
      }
    }
  }
  return picture;
}

// The share of pixels in which a picture differs from the one stored in `file`; 1 if the sizes differ. Stores the picture
// instead if there is none yet, or if `keep` is set.
export function difference(file, picture, keep) {
  if (keep || !existsSync(file)) {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, PNG.sync.write(picture, { colorType: 2, deflateLevel: 9 }));
    return 0;
  }
  const kept = PNG.sync.read(readFileSync(file));
  if (kept.width !== picture.width || kept.height !== picture.height) return 1;
  const differing = pixelmatch(kept.data, picture.data, undefined, kept.width, kept.height, { threshold: THRESHOLD });
  return differing / (kept.width * kept.height);
}
