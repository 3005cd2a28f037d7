// Makes a GIF of pictures, in a browser, which can read them: `gif([[url, hundredths], …])` gives it in base64. Each picture
// has only what changed since the one before; colours are the most frequent ones of all.
async (frames) => {
  const COLOURS = 128;
  const CLEAR = COLOURS - 1;
  const pictures = [];
  for (const [url, delay] of frames) {
    const image = new Image();
    image.src = url;
    await image.decode();
    const canvas = new OffscreenCanvas(image.width, image.height);
    const context = canvas.getContext("2d", { willReadFrequently: true });
    context.drawImage(image, 0, 0);
    pictures.push({ delay, pixels: new Uint32Array(context.getImageData(0, 0, image.width, image.height).data.buffer) });
    [frames.width, frames.height] = [image.width, image.height];
  }
  const { width, height } = frames;

  const counts = new Map();
  for (const { pixels } of pictures) for (const each of pixels) counts.set(each, (counts.get(each) ?? 0) + 1);
  const parts = (each) => [each & 255, (each >> 8) & 255, (each >> 16) & 255];
  const palette = [...counts].sort((a, b) => b[1] - a[1]).slice(0, CLEAR).map(([each]) => parts(each));
  const known = new Map();
  const indexOf = (colour) => {
    if (!known.has(colour)) {
      const [r, g, b] = parts(colour);
      const far = palette.map(([pr, pg, pb]) => (pr - r) ** 2 + (pg - g) ** 2 + (pb - b) ** 2);
      known.set(colour, far.indexOf(Math.min(...far)));
    }
    return known.get(colour);
  };

  const out = [];
  const word = (number) => out.push(number & 255, number >> 8);
  const text = (words) => out.push(...[...words].map((each) => each.charCodeAt(0)));
  const BITS = Math.log2(COLOURS);

  /** Lempel-Ziv-Welch as the format has it, in blocks of at most 255 bytes. */
  const packed = (indices) => {
    const bytes = [];
    let [held, count] = [0, 0];
    const put = (code, size) => {
      held |= code << count;
      for (count += size; count >= 8; count -= 8, held >>>= 8) bytes.push(held & 255);
    };
    const clear = 1 << BITS;
    let [codes, next, size, prefix] = [new Map(), clear + 2, BITS + 1, indices[0]];
    put(clear, size);
    for (const index of indices.slice(1)) {
      const key = prefix * 256 + index;
      const code = codes.get(key);
      if (code !== undefined) {
        prefix = code;
        continue;
      }
      put(prefix, size);
      if (next < 4096) {
        if (next === 1 << size) size++;
        codes.set(key, next++);
      } else {
        put(clear, size);
        [codes, next, size] = [new Map(), clear + 2, BITS + 1];
      }
      prefix = index;
    }
    put(prefix, size);
    put(clear + 1, size);
    if (count > 0) bytes.push(held & 255);
    out.push(BITS);
    for (let at = 0; at < bytes.length; at += 255) out.push(Math.min(255, bytes.length - at), ...bytes.slice(at, at + 255));
    out.push(0);
  };

  text("GIF89a");
  word(width);
  word(height);
  out.push(0xf0 | (BITS - 1), 0, 0);
  for (let each = 0; each < COLOURS; each++) out.push(...(palette[each] ?? [0, 0, 0]));
  out.push(0x21, 0xff, 11);
  text("NETSCAPE2.0");
  out.push(3, 1, 0, 0, 0);

  let before = null;
  for (const { pixels, delay } of pictures) {
    let [top, bottom] = [0, height - 1];
    const isSame = (row) => {
      for (let at = row * width; at < (row + 1) * width; at++) if (pixels[at] !== before[at]) return false;
      return true;
    };
    if (before) {
      while (top < bottom && isSame(top)) top++;
      while (bottom > top && isSame(bottom)) bottom--;
    }
    out.push(0x21, 0xf9, 4, 0x05);
    word(delay);
    out.push(CLEAR, 0, 0x2c);
    for (const each of [0, top, width, bottom - top + 1]) word(each);
    out.push(0);
    const indices = [];
    for (let at = top * width; at < (bottom + 1) * width; at++)
      indices.push(before && before[at] === pixels[at] ? CLEAR : indexOf(pixels[at]));
    packed(indices);
    before = pixels;
  }
  out.push(0x3b);
  let binary = "";
  for (let at = 0; at < out.length; at += 8192) binary += String.fromCharCode(...out.slice(at, at + 8192));
  return btoa(binary);
}
