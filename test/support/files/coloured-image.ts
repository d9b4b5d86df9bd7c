import sharp from 'sharp';

type Colour = readonly [red: number, green: number, blue: number];

/** A PNG of four quarters (top left, top right, bottom left, bottom right) as a data URI. */
export async function colouredImage(quarters: readonly [Colour, Colour, Colour, Colour], edge = 16): Promise<string> {
  const pixels = new Uint8Array(edge * edge * 3);
  for (let y = 0; y < edge; y += 1) {
    for (let x = 0; x < edge; x += 1) {
      const quarter = (y < edge / 2 ? 0 : 2) + (x < edge / 2 ? 0 : 1);
      pixels.set(quarters[quarter] ?? quarters[0], (y * edge + x) * 3);
    }
  }
  const png = await sharp(pixels, { raw: { width: edge, height: edge, channels: 3 } })
    .png()
    .toBuffer();
  return `data:image/png;base64,${png.toString('base64')}`;
}

export const red: Colour = [255, 0, 0];
export const green: Colour = [0, 255, 0];
export const blue: Colour = [0, 0, 255];
