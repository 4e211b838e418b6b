/** One line of at most `width` characters; control characters become blanks, so no result can paint the terminal. */
export function oneLine(text: string, width: number): string {
  const flat = text.replace(/[\p{Cc}\s]+/gu, ' ').trim();
  return flat.length > width ? `${flat.slice(0, width - 1)}…` : flat;
}

export function quote(text: string, width: number): string {
  return `“${oneLine(text, width)}”`;
}

/** Arguments of a tool call in one line: the only one bare, several by name, long texts by their length. */
export function shortArguments(args: unknown, width: number): string {
  const entries = Object.entries(typeof args === 'object' && args !== null ? args : {});
  const [only] = entries;
  if (entries.length === 1 && typeof only?.[1] === 'string') return oneLine(only[1], width);
  const parts = entries.map(([name, value]) => {
    const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
    return text.length > width ? `${name}=${oneLine(text, 40)} (${text.length} characters)` : `${name}=${text}`;
  });
  return oneLine(parts.join(' '), width * 2);
}

/** The text of a message, a tool's result, or anything that may have none. */
export function textOf(value: unknown): string {
  const content = (value as { content?: unknown } | null | undefined)?.content;
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content
    .map((block: { type?: unknown; text?: unknown }) => (block.type === 'text' ? String(block.text) : ''))
    .join('');
}
