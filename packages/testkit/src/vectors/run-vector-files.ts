import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { autoVectors } from './auto.js';
import { breakerVectors } from './breaker.js';
import { maxConcurrencyValueVectors } from './max-concurrency-value.js';
import { recoverVectors } from './recover.js';
import { timeoutVectors } from './timeout.js';
import { smoothVectors, tokenBucketVectors, warmUpCurveVectors } from './token-bucket.js';
import { brief, Difference, same, type VectorKind, VectorRecord } from './vector-file.js';

/** Every kind of file there is a replay for. */
const KINDS: readonly VectorKind[] = [
  autoVectors,
  timeoutVectors,
  breakerVectors,
  recoverVectors,
  maxConcurrencyValueVectors,
  tokenBucketVectors,
  smoothVectors,
  warmUpCurveVectors,
];

/** What a run found. */
export interface VectorRun {
  readonly passed: number;
  readonly failed: number;
  /** A line for each file that differs: which, where, expected, got. */
  readonly lines: readonly string[];
}

/**
 * Replays every `.json` file in the given folders, subfolders included, and files.
 *
 * A file fails at the first thing that is not as recorded, when its `kind` is unknown, and when a field of it went
 * unread: a setting that nobody looked at must not pass for tested.
 *
 * @throws the file system's error for a path that cannot be read
 */
export function runVectorFiles(paths: readonly string[]): VectorRun {
  let passed = 0;
  const lines: string[] = [];
  for (const path of paths.flatMap(filesIn)) {
    const difference = differenceIn(readFileSync(path, 'utf8'));
    if (difference === undefined) passed += 1;
    else {
      const { where, expected, got } = difference;
      lines.push(`${path}: ${where}: expected ${brief(expected)}, got ${brief(got)}`);
    }
  }
  return { passed, failed: lines.length, lines };
}

/** The first difference between a file's text and what the engines do; `undefined` if there is none. */
export function differenceIn(json: string): Difference | undefined {
  try {
    const file = new VectorRecord(JSON.parse(json));
    if (file.has('format')) same('format', 1, file.number('format'));
    for (const prose of ['name', 'about', 'hazard']) if (file.has(prose)) file.text(prose);
    const kind = file.any('kind');
    const known = KINDS.find(({ kinds }) => (kinds as readonly unknown[]).includes(kind));
    if (known === undefined) {
      return new Difference(
        'kind',
        `one of ${KINDS.flatMap(({ kinds }) => kinds).join(', ')}`,
        kind,
      );
    }
    known.replay(file);
    const [unread] = file.unread();
    if (unread !== undefined) return new Difference(unread, 'to be read', 'unread');
    return undefined;
  } catch (error) {
    if (error instanceof Difference) return error;
    // an engine that throws where brpc's went on differs too
    return new Difference('replay', 'no error', error instanceof Error ? error.message : error);
  }
}

function filesIn(path: string): string[] {
  if (!statSync(path).isDirectory()) return [path];
  return readdirSync(path, { withFileTypes: true })
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const inner = join(path, entry.name);
      if (entry.isDirectory()) return filesIn(inner);
      return entry.name.endsWith('.json') ? [inner] : [];
    });
}
