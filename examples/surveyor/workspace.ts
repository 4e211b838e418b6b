import { realpathSync, statSync } from 'node:fs';
import { lstat, realpath } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';

/** Folders that listing, searching and counting leave out: version control, dependencies, caches and build output. */
export const skippedFolders: readonly string[] = [
  '.git',
  '.hg',
  '.svn',
  'node_modules',
  '.cache',
  '.venv',
  '__pycache__',
  'dist',
  'coverage',
];

/**
 * A folder that paths cannot leave: not by `..`, not by an absolute path, not through a symbolic link. Links are
 * resolved before the check, so a link that stays inside works. The check and the use are two steps: it keeps a model
 * inside the folder, not a program that swaps links at the same time.
 */
export interface Workspace {
  /** Real path of the folder. */
  readonly root: string;
  /** Real path of a file or folder that is there. Throws for what is outside and for what is missing. */
  existing(path: string): Promise<string>;
  /** Real path of a file to be written; it and its folders may be missing. A link in its place is not followed. */
  target(path: string): Promise<string>;
  /** How a real path is shown: relative to the folder, with forward slashes. */
  show(realPath: string): string;
}

/** @throws Error when `folder` is not there or not a folder */
export function openWorkspace(folder: string): Workspace {
  const given = resolve(folder);
  const root = realRoot(given);

  /** The folder may be named by a path with links in it (such as /tmp on macOS), and paths in it likewise. */
  const absolute = (path: string): string => {
    if (path.includes('\0')) throw new Error('The path has a zero byte in it.');
    const wanted = resolve(root, path);
    return isInside(given, wanted) ? join(root, relative(given, wanted)) : wanted;
  };

  const locate = async (wanted: string, shown: string): Promise<{ real: string; missing: string[] }> => {
    // Checked before the disk is asked, so that nobody learns what exists outside.
    if (!isInside(root, wanted)) throw outside(shown);
    const found = await nearestReal(wanted, shown);
    if (!isInside(root, found.real)) throw outside(shown);
    return found;
  };

  return {
    root,
    show: (realPath) => relative(root, realPath).split(sep).join('/') || '.',
    async existing(path) {
      const { real, missing } = await locate(absolute(path), path);
      if (missing.length > 0) throw new Error(`There is no "${path}" in the workspace.`);
      return real;
    },
    async target(path) {
      const wanted = absolute(path);
      if (wanted === root) throw new Error(`"${path}" is the folder itself, not a file.`);
      const { real, missing } = await locate(dirname(wanted), path);
      return join(real, ...missing, basename(wanted));
    },
  };
}

function realRoot(folder: string): string {
  let isFolder = false;
  try {
    isFolder = statSync(folder).isDirectory();
  } catch {
    // Said below.
  }
  if (!isFolder) throw new Error(`The workspace "${folder}" is not a folder.`);
  return realpathSync(folder);
}

function isInside(root: string, path: string): boolean {
  const way = relative(root, path);
  return way === '' || (way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way));
}

/** The real path of the nearest part that exists, and the names below it that do not. */
async function nearestReal(wanted: string, shown: string): Promise<{ real: string; missing: string[] }> {
  const missing: string[] = [];
  for (let current = wanted; ; current = dirname(current)) {
    try {
      return { real: await realpath(current), missing };
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'ENOTDIR') throw new Error(`"${shown}": a part of the path is a file, not a folder.`);
      if (code !== 'ENOENT') throw new Error(`"${shown}" cannot be opened: ${code ?? (error as Error).message}.`);
      // A link to nowhere exists: what a write would make at its end may be outside.
      if (await isThere(current)) throw new Error(`"${shown}" leads through a link to something that is not there.`);
      missing.unshift(basename(current));
    }
  }
}

async function isThere(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    () => false,
  );
}

function outside(path: string): Error {
  return new Error(`"${path}" is outside the workspace. Only paths inside it can be used.`);
}
