// Writes pictures with at most 256 colours, which take a third of the bytes of others.
import { deflateSync } from "node:zlib";
import { PNG } from "pngjs";

const COLOURS_MAX = 256;

const CRC = Array.from({ length: 256 }, (_, number) => {
  let crc = number;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? 0xedb88320 ^ (crc >>> 1) : crc >>> 1;
  return crc >>> 0;
});

function chunk(kind, data) {
  const body = Buffer.concat([Buffer.from(kind, "latin1"), data]);
  let crc = 0xffffffff;
  for (const byte of body) crc = CRC[(crc ^ byte) & 255] ^ (crc >>> 8);
  const framed = Buffer.alloc(body.length + 8);
  framed.writeUInt32BE(data.length, 0);
  body.copy(framed, 4);
  framed.writeUInt32BE((crc ^ 0xffffffff) >>> 0, body.length + 4);
  return framed;
}

// The most frequent groups of similar colours, each with its mean; other colours become the nearest of them.
export function reduced(bytes) {
  const { width, height, data } = PNG.sync.read(bytes);
  const groups = new Map();
  const key = (at) => ((data[at] & 0xfc) << 16) | ((data[at + 1] & 0xfc) << 8) | (data[at + 2] & 0xfc);
  for (let at = 0; at < data.length; at += 4) {
    const group = groups.get(key(at)) ?? { count: 0, sums: [0, 0, 0] };
    group.count += 1;
    group.sums.forEach((_, part) => (group.sums[part] += data[at + part]));
    groups.set(key(at), group);
  }
  const frequent = [...groups.entries()].sort((a, b) => b[1].count - a[1].count).slice(0, COLOURS_MAX);
  const palette = frequent.map(([colour]) => colour);
  const parts = (colour) => [(colour >> 16) & 255, (colour >> 8) & 255, colour & 255];
  const known = new Map(palette.map((colour, index) => [colour, index]));
  const nearest = (colour) => {
    let best = known.get(colour);
    if (best !== undefined) return best;
    let distance = Infinity;
    palette.forEach((other, index) => {
      const between = parts(other).reduce((sum, part, at) => sum + (part - parts(colour)[at]) ** 2, 0);
      if (between < distance) [distance, best] = [between, index];
    });
    known.set(colour, best);
    return best;
  };
  const rows = Buffer.alloc((width + 1) * height);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) rows[y * (width + 1) + 1 + x] = nearest(key((y * width + x) * 4));
  }
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 3, 0, 0, 0], 8);
  const colours = Buffer.from(frequent.flatMap(([, { count, sums }]) => sums.map((sum) => Math.round(sum / count))));
  const signature = Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]);
  return Buffer.concat([signature, chunk("IHDR", header), chunk("PLTE", colours), chunk("IDAT", deflateSync(rows, { level: 9 })), chunk("IEND", Buffer.alloc(0))]);
}
