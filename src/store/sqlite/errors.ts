import { EverturnError, errorText, isEverturnError } from '../../common/errors.ts';

/** Primary result codes of SQLite (the low byte of `errcode`). */
const sqliteCode = {
  busy: 5,
  locked: 6,
  readonly: 8,
  ioerr: 10,
  corrupt: 11,
  full: 13,
  cantopen: 14,
  notadb: 26,
};

/** SQLite's primary result code, if the error is one of SQLite. */
function sqliteCodeOf(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('errcode' in error) || typeof error.errcode !== 'number') return undefined;
  return error.errcode & 0xff;
}

export function isBusy(error: unknown): boolean {
  const code = sqliteCodeOf(error);
  return code === sqliteCode.busy || code === sqliteCode.locked;
}

/** What went wrong with the store's files, in the codes of the public interface and with the file that it is about. */
export function toStoreError(error: unknown, file: string): EverturnError {
  if (isEverturnError(error)) return error;
  const systemCode = error instanceof Error && 'code' in error ? String(error.code) : '';
  const code = sqliteCodeOf(error);
  const text = errorText(error);
  if (code === sqliteCode.full || systemCode === 'ENOSPC' || systemCode === 'EDQUOT') {
    return new EverturnError('store_full', `The store is full (${text}): free space on the disk of ${file}.`, {
      retryable: true,
      cause: error,
    });
  }
  if (code === sqliteCode.corrupt || code === sqliteCode.notadb) {
    return new EverturnError('store', `${file} is damaged or no Everturn store (${text}). Restore it from a backup.`, {
      cause: error,
    });
  }
  const passing: (number | undefined)[] = [
    sqliteCode.busy,
    sqliteCode.locked,
    sqliteCode.ioerr,
    sqliteCode.cantopen,
    sqliteCode.readonly,
  ];
  if (passing.includes(code) || (code === undefined && /^E[A-Z]+$/.test(systemCode))) {
    const advice = code === sqliteCode.busy ? 'Another process holds its lock.' : 'Check its folder and permissions.';
    return new EverturnError('store_unavailable', `The store ${file} cannot be used (${text}). ${advice}`, {
      retryable: true,
      cause: error,
    });
  }
  if (code !== undefined) return new EverturnError('store', `The store ${file} failed: ${text}`, { cause: error });
  return new EverturnError('internal', `The store failed: ${text}`, { cause: error });
}
