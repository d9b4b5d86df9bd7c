export interface InspectImagesInput {
  /** Whole files. */
  readonly images: readonly Uint8Array[];
  /** The name of each in messages. */
  readonly names: readonly string[];
}

export interface InspectImagesResult {
  /** From the headers alone, turned as the image is to be seen; a sentence where there is no image that can be read. */
  readonly sizes: readonly ({ readonly width: number; readonly height: number } | { readonly refused: string })[];
}

export interface PrepareImageInput {
  readonly image: Uint8Array;
  readonly name: string;
  /** `inside` keeps the shape within the size and never enlarges, `cover` fills it and cuts the rest off, `fill` distorts. */
  readonly fit: 'inside' | 'cover' | 'fill';
  readonly width: number;
  readonly height: number;
  /** Makes a file of it again; without it, RGB bytes. */
  readonly encode?: 'jpeg' | 'png';
  /** Scales each channel to `(value / 255 - mean) / deviation` and puts one plane behind the other. */
  readonly normalize?: { readonly mean: readonly number[]; readonly deviation: readonly number[] };
}

export interface PrepareImageResult {
  readonly width: number;
  readonly height: number;
  /** The file; or `Uint8Array` of height x width x 3, or `Float32Array` of 3 x height x width. */
  readonly data: Uint8Array | Float32Array;
}
