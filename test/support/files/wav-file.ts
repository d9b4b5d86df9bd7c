/** A WAV file of 16-bit integers, the same in every channel. */
export function wavFile(samples: Float32Array, rate: number, channels = 1): Uint8Array {
  const bytes = new Uint8Array(44 + samples.length * channels * 2);
  const view = new DataView(bytes.buffer);
  const text = (at: number, word: string) => bytes.set(new TextEncoder().encode(word), at);
  text(0, 'RIFF');
  view.setUint32(4, bytes.length - 8, true);
  text(8, 'WAVEfmt ');
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true);
  view.setUint16(22, channels, true);
  view.setUint32(24, rate, true);
  view.setUint32(28, rate * channels * 2, true);
  view.setUint16(32, channels * 2, true);
  view.setUint16(34, 16, true);
  text(36, 'data');
  view.setUint32(40, bytes.length - 44, true);
  for (const [at, sample] of samples.entries()) {
    for (let channel = 0; channel < channels; channel += 1) {
      view.setInt16(44 + (at * channels + channel) * 2, Math.round(sample * 32_767), true);
    }
  }
  return bytes;
}

/** A tone of that many waves a second. */
export function tone(hz: number, seconds: number, rate: number): Float32Array {
  return Float32Array.from({ length: seconds * rate }, (_, at) => 0.5 * Math.sin((2 * Math.PI * hz * at) / rate));
}
