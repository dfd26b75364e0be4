/** Splits SQL into tokens without comments, even if the SQL does not parse. */

export interface Token {
  readonly kind: "name" | "quoted" | "sign" | "value";
  /** The text of the token. Names are unquoted, and bare words are in lower case. */
  readonly text: string;
  readonly from: number;
  readonly to: number;
}

const TOKEN =
  /--[^\n]*|\/\*[^]*?(?:\*\/|$)|\$(\w*)\$[^]*?(?:\$\1\$|$)|'(?:[^']|'')*(?:'|$)|"((?:[^"]|"")*)(?:"|$)|\d[\w.]*|([\p{L}_][\p{L}\p{N}_$]*)|\S/gu;

export function tokensOf(text: string): Token[] {
  return [...text.matchAll(TOKEN)].flatMap((match): Token[] => {
    const [all, , quoted, word] = match;
    const at = { from: match.index, to: match.index + all.length };
    if (all.startsWith("--") || all.startsWith("/*")) return [];
    if (quoted !== undefined) {
      return [{ kind: "quoted", text: quoted.replaceAll('""', '"'), ...at }];
    }
    if (word !== undefined) return [{ kind: "name", text: word, ...at }];
    return [{ kind: /^[\d'$]/.test(all) ? "value" : "sign", text: all, ...at }];
  });
}

/** Whether an offset is inside a comment. */
export function isInComment(text: string, cursor: number): boolean {
  const comments = text.matchAll(TOKEN);
  for (const { 0: all, index } of comments) {
    const isComment = all.startsWith("--") || all.startsWith("/*");
    const end = index + all.length;
    // The end of a block comment is outside the comment. The end of a line comment is still inside
    // it.
    if (isComment && index < cursor && (all.startsWith("--") ? cursor <= end : cursor < end)) {
      return true;
    }
  }
  return false;
}
