const day = '(?:0[1-9]|1[0-9]|2[0-8])';
const month30 = `(?:${day}|29|30)`;
const monthDay = `(?:(?:0[13578]|1[02])-(?:${month30}|31)|(?:0[469]|11)-${month30}|02-${day})`;
/** From the year 1: many languages know none before it. */
const year = '(?:000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-9][0-9]{3})';
const date = `${year}-${monthDay}`;
const clock = '(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,9})?';
const zone = '(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])';
const octet = '(?:[0-9]|[1-9][0-9]|1[0-9]{2}|2[0-4][0-9]|25[0-5])';
const hex = '[0-9a-fA-F]';
const label = '[A-Za-z0-9](?:[A-Za-z0-9-]{0,30}[A-Za-z0-9])?';

const host = `${label}(?:\\.${label}){0,3}`;
/** Host name of a URL. The last label is not a number, and no label is in Punycode. */
const webHost =
  '(?:[A-Za-z0-9]{1,24}(?:-[A-Za-z0-9]{1,24}){0,3}\\.){0,3}[A-Za-z][A-Za-z0-9]{0,23}(?:-[A-Za-z0-9]{1,24}){0,3}';
const group = `${hex}{1,4}`;
const unreserved = '[A-Za-z0-9._~-]';
const count = '[0-9]{1,4}';
const clockPart = `T(?:${count}H(?:${count}M(?:${count}S)?)?|${count}M(?:${count}S)?|${count}S)`;
const dayPart = `(?:${count}Y(?:${count}M(?:${count}D)?)?|${count}M(?:${count}D)?|${count}D)`;
const uuid = (version: string, variant: string) =>
  `${hex}{8}-${hex}{4}-${version}${hex}{3}-${variant}${hex}{3}-${hex}{12}`;

/** Some of what each format allows, and nothing that it does not, as regular expressions without anchors. */
const formats: Readonly<Record<string, string>> = {
  date,
  time: `${clock}${zone}`,
  'date-time': `${date}T${clock}${zone}`,
  uuid: uuid(hex, hex),
  ipv4: `${octet}\\.${octet}\\.${octet}\\.${octet}`,
  ipv6: `(?:(?:${group}:){7}${group}|::(?:${group}(?::${group}){0,5})?)`,
  hostname: host,
  uri: `https?://${webHost}(?::[1-9][0-9]{0,3})?(?:/${unreserved}{0,64}){0,8}(?:\\?(?:${unreserved}|[=&+]){1,128})?`,
  duration: `P(?:${dayPart}(?:${clockPart})?|${clockPart}|${count}W)`,
  email: `[A-Za-z0-9_+-]{1,32}(?:\\.[A-Za-z0-9_+-]{1,32})?@${label}(?:\\.${label}){1,3}`,
};

export const formatNames = [...Object.keys(formats), 'uuid1 to uuid8'].join(', ');

/** A regular expression for texts of a format; undefined for one that is not known. */
export function formatPattern(format: unknown): string | undefined {
  if (typeof format !== 'string') return undefined;
  const [, version] = /^uuid([1-8])$/.exec(format) ?? [];
  const known = version === undefined ? undefined : uuid(version, '[89abAB]');
  const inside = known ?? (Object.hasOwn(formats, format) ? formats[format] : undefined);
  return inside === undefined ? undefined : `^(?:${inside})$`;
}
