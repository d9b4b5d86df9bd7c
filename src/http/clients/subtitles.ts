import type { SpokenSegment } from '../../model-host/operations/transcribe.ts';

/** Subtitles in SubRip or WebVTT. */
export function subtitles(segments: readonly SpokenSegment[], format: 'srt' | 'vtt'): string {
  const mark = format === 'srt' ? ',' : '.';
  const cues = segments.map(({ start, end, text }, at) => {
    const number = format === 'srt' ? `${at + 1}\n` : '';
    return `${number}${clock(start, mark)} --> ${clock(end, mark)}\n${text}\n`;
  });
  return `${format === 'vtt' ? 'WEBVTT\n\n' : ''}${cues.join('\n')}`;
}

/** `01:02:03,450` */
function clock(seconds: number, mark: string): string {
  const milliseconds = Math.round(seconds * 1_000);
  const two = (value: number) => String(Math.floor(value)).padStart(2, '0');
  const [hours, minutes] = [milliseconds / 3_600_000, (milliseconds / 60_000) % 60];
  return `${two(hours)}:${two(minutes)}:${two((milliseconds / 1_000) % 60)}${mark}${String(milliseconds % 1_000).padStart(3, '0')}`;
}
