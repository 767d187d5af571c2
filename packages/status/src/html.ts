/** Text that is HTML already. Made by {@link html} only, so that nothing gets in unescaped. */
export class Html {
  constructor(readonly text: string) {}
}

type Part = Html | string | number | readonly Html[];

/** A template whose values are escaped, unless they are HTML themselves. */
export function html(texts: TemplateStringsArray, ...parts: readonly Part[]): Html {
  let text = texts[0] ?? '';
  parts.forEach((part, i) => {
    text += render(part) + (texts[i + 1] ?? '');
  });
  return new Html(text);
}

function render(part: Part): string {
  if (part instanceof Html) return part.text;
  if (typeof part === 'object') return part.map((each) => each.text).join('');
  return escapeHtml(String(part));
}

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Safe as an element's text and inside a quoted attribute. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ESCAPES[character] ?? character);
}

/** Names come from outside: never longer than a line. */
export function shorten(text: string, most = 120): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}
