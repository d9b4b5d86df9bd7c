export interface ReadPdfInput {
  /** The whole file. */
  readonly file: Uint8Array;
  /** Its name in messages. */
  readonly name: string;
  /** Characters of text; what comes behind them is left out. */
  readonly charsMax: number;
}

export interface ReadPdfResult {
  /** Of the pages in their order, with an empty line between them. */
  readonly text: string;
  readonly pages: number;
}

export interface ShowPdfInput {
  readonly file: Uint8Array;
  readonly name: string;
  /** Longer edge of the picture, in pixels. */
  readonly edgeMax: number;
}

export interface ShowPdfResult {
  /** A PNG file of the first page. */
  readonly image: Uint8Array;
  readonly width: number;
  readonly height: number;
}

export interface ReadHtmlInput {
  readonly html: string;
  readonly name: string;
}

export interface ReadHtmlResult {
  readonly title: string;
  /**
   * HTML of what there is to be read, without navigation, scripts and
   * advertisements; of all of the page where that cannot be told.
   */
  readonly html: string;
}
