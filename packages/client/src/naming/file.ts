import { readFileSync, statSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { integerIn, knownKeys, type TimerHandle, textOf } from '@elimit/core';
import { inItsTime } from './in-time.js';
import { type Naming, type NodeValue, resolveNodes } from './naming.js';

/** How `fileNaming` reads. */
export interface FileNamingOptions {
  /** How often the file is looked at, in milliseconds, 10 to 3 600 000. @default 1000 */
  readonly intervalMs?: number | undefined;
}

const FILE_NAMING_DEFAULTS = { intervalMs: 1000 } as const;

/**
 * Nodes from a file: one a line, `url [weight]`; empty lines and text after `#` are skipped. The file is
 * looked at again and again, because watching alone misses files that are replaced by renaming.
 * A file that is missing at first is an error at once; one that turns bad later leaves the last list standing.
 */
export function fileNaming(path: string, options: FileNamingOptions = {}): Naming {
  textOf('fileNaming path', path);
  knownKeys('fileNaming', options, FILE_NAMING_DEFAULTS);
  const intervalMs = integerIn(
    'fileNaming.intervalMs',
    options.intervalMs ?? FILE_NAMING_DEFAULTS.intervalMs,
    10,
    3_600_000,
  );
  return {
    watch(listener, timers) {
      let stopped = false;
      let timer: TimerHandle;
      let seen = stampOf(statSync(path));
      listener.update(parse(path, readFileSync(path, 'utf8')));

      function failed(error: unknown): void {
        if (!stopped) listener.failed(error);
      }

      async function look(): Promise<void> {
        try {
          const stats = await inItsTime(`a look at ${path}`, timers, () => stat(path), failed);
          const now = stampOf(stats);
          if (now !== seen) {
            const read = () => readFile(path, 'utf8');
            const text = await inItsTime(`reading ${path}`, timers, read, failed);
            const nodes = parse(path, text);
            seen = now;
            if (!stopped) listener.update(nodes);
          }
        } catch (error) {
          failed(error);
        }
        if (!stopped) timer = timers.setTimeout(() => void look(), intervalMs);
      }

      timer = timers.setTimeout(() => void look(), intervalMs);
      return () => {
        stopped = true;
        timers.clearTimeout(timer);
      };
    },
  };
}

/** Changes whenever the file is written or replaced. */
function stampOf(stats: { mtimeMs: number; size: number; ino: number }): string {
  return `${stats.mtimeMs} ${stats.size} ${stats.ino}`;
}

function parse(path: string, text: string): NodeValue[] {
  const nodes: NodeValue[] = [];
  for (const line of text.split('\n')) {
    const [url, weight] = line.replace(/#.*/, '').trim().split(/\s+/);
    if (url === undefined || url === '') continue;
    nodes.push(weight === undefined ? { url } : { url, weight: Number(weight) });
  }
  resolveNodes(path, nodes);
  return nodes;
}
