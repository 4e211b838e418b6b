import { skippedFolders } from '../workspace.ts';

/**
 * Shell commands that only read, in POSIX words, so that they run on Linux and macOS and may be run again at any time.
 * Rows come back as tab separated values whose first field says what they are.
 */
const prune = `-type d \\( ${skippedFolders.map((name) => `-name ${name}`).join(' -o ')} \\) -prune -o -type f`;

/** `wc -lc` over files, one row a file; its own totals are left out because they do not begin with "./". */
const eachFile = (condition: string) =>
  `find . ${prune} ${condition}-exec wc -lc {} + 2>/dev/null | ` +
  `awk '/^ *[0-9]+ +[0-9]+ \\.\\// { path = $0; sub(/^ *[0-9]+ +[0-9]+ \\.\\//, "", path); ` +
  `printf "%s\\t%s\\t%s\\n", $1, $2, path }'`;

/** Files, lines and bytes: `all`, and the 40 largest `type` (by extension) and `top` (by folder at the top). */
export const countCommand = [
  '# files, lines and bytes, by type and by folder',
  'export LC_ALL=C',
  `printf 'name\\t%s\\n' "$(basename "$PWD")"`,
  `${eachFile('')} | awk -F '\\t' '
  { name = $3; sub(/.*\\//, "", name)
    type = name; if (name ~ /.\\.[^.]+$/) sub(/.*\\./, "", type); else type = "(no extension)"
    top = $3; if (top ~ /\\//) sub(/\\/.*/, "", top); else top = "."
    add("all", "all"); add("type", tolower(type)); add("top", top) }
  function add(kind, name) { key = kind "\\t" name; files[key]++; lines[key] += $1; bytes[key] += $2 }
  END { for (key in files) printf "%s\\t%.0f\\t%.0f\\t%.0f\\n", key, files[key], lines[key], bytes[key] }' |
  sort -t "$(printf '\\t')" -k1,1 -k4,4nr -k2,2 | awk -F '\\t' '++shown[$1] <= 40'`,
].join('\n');

/**
 * Weighs every package below node_modules, one after the other, and tells now and then how far it is. That is tens of
 * thousands of files in most projects, so it takes a while.
 */
export const weighCommand = `# files, lines and bytes of every package in node_modules
export LC_ALL=C
for folder in node_modules/* node_modules/@*/*; do
  case $folder in node_modules/@*/*) ;; node_modules/@*) continue ;; esac
  if [ ! -d "$folder" ] || [ -L "$folder" ]; then continue; fi
  find "$folder" -type f -exec wc -lc {} + 2>/dev/null | awk -v name="\${folder#node_modules/}" '
    / node_modules\\// { files++; lines += $1; bytes += $2 }
    END { printf "package\\t%s\\t%.0f\\t%.0f\\t%.0f\\n", name, files, lines, bytes }'
  n=$((n + 1)); if [ $((n % 25)) -eq 1 ]; then echo "weighing package $n" >&2; fi
done | sort -t "$(printf '\\t')" -k5,5nr -k2,2 | awk -F '\\t' '
  NR <= 5 { print }
  { files += $3; lines += $4; bytes += $5 }
  END { printf "packages\\t%d\\t%.0f\\t%.0f\\t%.0f\\n", NR, files, lines, bytes }'`;

/** Row `largest` for each of the largest files, by bytes. */
export function largestCommand(count: number): string {
  return `# the ${count} largest files
export LC_ALL=C
${eachFile('')} | sort -t "$(printf '\\t')" -k2,2nr -k3,3 | awk -F '\\t' 'NR <= ${count} { print "largest\\t" $0 }'`;
}

/** What `find` calls a test file, in the habits of several languages. */
const testFiles =
  "\\( -path './test/*' -o -path './tests/*' -o -path '*/__tests__/*' -o -name '*.test.*' -o -name '*.spec.*' " +
  "-o -name '*_test.*' -o -name 'test_*.py' \\) ";
const docFiles = "\\( -iname '*.md' -o -iname '*.mdx' -o -iname '*.rst' -o -iname '*.adoc' -o -path './docs/*' \\) ";

/** Rows `files` (count, lines, bytes) and `file` for the five longest of those that belong to a topic. */
export function topicCommand(word: string): string {
  const condition = word === 'tests' ? testFiles : word === 'docs' ? docFiles : `-ipath '*${word}*' `;
  return `# files of the topic ${word}
export LC_ALL=C
${eachFile(condition)} | sort -t "$(printf '\\t')" -k1,1nr -k3,3 | awk -F '\\t' '
  NR <= 5 { print "file\\t" $0 }
  { lines += $1; bytes += $2 }
  END { printf "files\\t%d\\t%.0f\\t%.0f\\n", NR, lines, bytes }'`;
}

/** Rows of a command's output by their first field. Lines of another shape are progress and are left out. */
export function parseRows(output: string, kind: string): string[][] {
  return output
    .split('\n')
    .map((line) => line.split('\t'))
    .filter((fields) => fields[0] === kind)
    .map((fields) => fields.slice(1));
}
