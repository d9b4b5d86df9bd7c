const pattern = /^(\d{4})-(\d{2})-(\d{2})(?:[Tt ](\d{2}):(\d{2}):(\d{2})(?:\.\d+)?(?:[Zz]|[+-]\d{2}:\d{2}))?$/;

/** Whether the text is a date (YYYY-MM-DD) or a time (RFC 3339) that exists in the calendar. */
export function isDateText(text: string): boolean {
  if (text.length > 40) return false;
  const found = pattern.exec(text);
  if (!found) return false;
  const [year, month, day, hour, minute, second] = found.slice(1).map(Number);
  if (month === undefined || month < 1 || month > 12) return false;
  if (day === undefined || day < 1 || day > new Date(Date.UTC(year ?? 0, month, 0)).getUTCDate()) return false;
  return !found[4] || ((hour ?? 0) <= 23 && (minute ?? 0) <= 59 && (second ?? 0) <= 60);
}
