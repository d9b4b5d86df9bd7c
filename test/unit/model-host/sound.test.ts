import { describe, expect, test } from 'bun:test';
import { MelSpectrogram } from '../../../src/model-host/backends/onnx/sound/mel-spectrogram.ts';
import { resampled, resampledLength, wavSamples } from '../../../src/model-host/backends/onnx/sound/wav-samples.ts';
import { tone, wavFile } from '../../support/files/wav-file.ts';

const folder = Bun.fileURLToPath(new URL('../../fixtures/models/transcribers/tiny-ear/', import.meta.url));
const reference = await Bun.file(`${folder}reference.json`).json();

describe('a mel spectrogram', () => {
  test('is what numpy makes of the same sound', async () => {
    const rate = 8_000;
    const rising = Float32Array.from({ length: rate }, (_, at) => {
      const seconds = at / rate;
      return 0.5 * Math.sin(2 * Math.PI * (200 * seconds + 1_400 * seconds ** 2));
    });
    const mel = (await MelSpectrogram.open({ rate, window: 200, hop: 80, bands: 40 })).of(rising);
    expect(mel.length).toBe(40 * 100);
    for (const [at, [band, frame]] of reference.places.entries()) {
      expect(mel[band * 100 + frame]).toBeCloseTo(reference.values[at], 4);
    }
    expect(mel.reduce((sum, each) => sum + each, 0) / mel.length).toBeCloseTo(reference.mean, 5);
  });

  test('of silence is as low as it gets', async () => {
    const spectrogram = await MelSpectrogram.open({ rate: 8_000, window: 200, hop: 80, bands: 4 });
    expect(new Set(spectrogram.of(new Float32Array(800)))).toEqual(new Set([-1.5]));
  });
});

describe('WAV files', () => {
  test('are read whatever their samples are, channels averaged', () => {
    const sound = tone(440, 0.01, 8_000);
    const file = wavFile(sound, 8_000, 2);
    const read = wavSamples(file);
    expect([read.rate, read.data.length]).toEqual([8_000, 80]);
    for (const [at, value] of read.data.entries()) expect(value).toBeCloseTo(sound[at] ?? 9, 3);
    const floats = new Uint8Array(44 + 8);
    floats.set(file.subarray(0, 44));
    const view = new DataView(floats.buffer);
    view.setUint16(20, 3, true);
    view.setUint16(22, 1, true);
    view.setUint16(34, 32, true);
    view.setUint32(40, 8, true);
    view.setFloat32(44, 0.25, true);
    view.setFloat32(48, Number.NaN, true);
    expect(Array.from(wavSamples(floats).data)).toEqual([0.25, 0]);
    view.setUint16(20, 1, true);
    view.setUint16(34, 24, true);
    floats.set([0, 0, 0x40, 0, 0, 0xc0], 44);
    expect(Array.from(wavSamples(floats).data)).toEqual([0.5, -0.5]);
  });

  test('that are none are refused, and a length beyond the end is taken as the end', () => {
    const file = wavFile(tone(440, 0.01, 8_000), 8_000);
    const wrong = (change: (view: DataView) => void) => {
      const copy = file.slice();
      change(new DataView(copy.buffer));
      return () => wavSamples(copy);
    };
    expect(() => wavSamples(file.subarray(0, 30))).toThrow('no WAV file');
    expect(wrong((view) => view.setUint16(34, 12, true))).toThrow('12 bits');
    expect(wrong((view) => view.setUint16(22, 0, true))).toThrow('0 channels');
    expect(wrong((view) => view.setUint32(24, 0, true))).toThrow('0 samples a second');
    expect(wrong((view) => view.setUint16(20, 85, true))).toThrow('encoding 85');
    const claiming = (length: number) => wrong((view) => view.setUint32(40, length, true))();
    for (const length of [0, 0x7fff_f000, 0x8000_0000, 0xffff_ffff]) expect(claiming(length).data.length).toBe(80);
  });

  test('another rate keeps the tone', () => {
    const before = { rate: 44_100, data: tone(440, 0.1, 44_100) };
    const after = resampled(before, 16_000, 0, resampledLength(before, 16_000));
    const wanted = tone(440, 0.1, 16_000);
    expect(after.length).toBe(1_600);
    for (let at = 100; at < 1_500; at += 1) expect(after[at]).toBeCloseTo(wanted[at] ?? 9, 2);
    const parts = [resampled(before, 16_000, 0, 700), resampled(before, 16_000, 700, 1_600)];
    expect(parts.flatMap((part) => [...part])).toEqual([...after]);
    const high = resampled({ rate: 44_100, data: tone(12_000, 0.1, 44_100) }, 16_000, 0, 1_600);
    expect(Math.max(...high.subarray(100, 1_500).map(Math.abs))).toBeLessThan(0.02);
  });
});
