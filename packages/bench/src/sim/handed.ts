import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const SCENARIOS = fileURLToPath(new URL('../../scenarios/', import.meta.url));
const HASHES = fileURLToPath(new URL('handed-hashes.json', import.meta.url));

/** The files of the matrix, in order. Throws unless they are, byte for byte, the ones whose hashes are written down. */
export function handedFiles(): string[] {
  const written = JSON.parse(readFileSync(HASHES, 'utf8')) as Record<string, string>;
  const found = readdirSync(SCENARIOS).filter((name) => /^\d\d-.*\.json$/.test(name));
  const extra = found.filter((name) => written[name] === undefined);
  if (extra.length > 0)
    throw new Error(
      `scenarios/${extra[0]} has no hash in handed-hashes.json: it is not of the matrix`,
    );
  for (const [name, hash] of Object.entries(written)) {
    if (!found.includes(name)) throw new Error(`scenarios/${name} is missing`);
    const now = createHash('sha256')
      .update(readFileSync(join(SCENARIOS, name)))
      .digest('hex');
    if (now !== hash)
      throw new Error(`scenarios/${name} was changed: its marks are not ours to move`);
  }
  return Object.keys(written).map((name) => join(SCENARIOS, name));
}
