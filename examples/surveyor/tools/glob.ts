/** Characters that mean something in a regular expression and nothing in a glob. */
const special = /[\\^$.|+()[\]]/;

/**
 * A glob with `*`, `?`, `**` and `{a,b}` as a regular expression for relative paths with forward slashes. A glob
 * without a slash is matched against the file's name in any folder.
 */
export function globToRegExp(glob: string): RegExp {
  let source = '';
  let depth = 0;
  for (let index = 0; index < glob.length; index++) {
    const character = glob[index] ?? '';
    if (glob.startsWith('**/', index)) {
      source += '(?:.*/)?';
      index += 2;
    } else if (glob.startsWith('**', index)) {
      source += '.*';
      index += 1;
    } else if (character === '*') source += '[^/]*';
    else if (character === '?') source += '[^/]';
    else if (character === '{') {
      source += '(?:';
      depth += 1;
    } else if (character === '}' && depth > 0) {
      source += ')';
      depth -= 1;
    } else if (character === ',' && depth > 0) source += '|';
    else source += special.test(character) || character === '}' ? `\\${character}` : character;
  }
  source += ')'.repeat(depth);
  return new RegExp(glob.includes('/') ? `^${source.replace(/^\\\.\//, '')}$` : `(?:^|/)${source}$`);
}
