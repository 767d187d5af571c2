import { StrictClusterRecovery } from '@elimit/core';
import { rowNumbers } from './completion-rows.js';
import { Difference, same, type VectorKind, type VectorRecord } from './vector-file.js';

const COLUMNS = {
  recovering: 'recovering',
  last_usable: 'lastUsable',
  last_usable_change_time_ms: 'lastUsableChangeTimeMs',
  usable_cache: 'usableCache',
  usable_cache_time_ms: 'usableCacheTimeMs',
} as const;

/** Files of the strict cluster recovery. */
export const recoverVectors: VectorKind = { kinds: ['recover'], replay };

function replay(file: VectorRecord): void {
  same('flags', [], file.record('flags').names);
  same('state_columns', Object.keys(COLUMNS), file.texts('state_columns'));
  const rows = file.list('rows');
  const expected = file.list('expect');
  same('expect.length', rows.length, expected.length);

  const minWorkingInstances = file.number('min_working_instances');
  let nowUs = file.number('start_us');
  let usable = file.number('servers');
  let draw = 0;
  const recovery = new StrictClusterRecovery(
    { minWorkingInstances, holdMs: file.number('hold_seconds') * 1000 },
    () => (draw + 0.5) / minWorkingInstances, // the file lists whole numbers, the engine draws from [0, 1)
  );
  const state = (): unknown[] => {
    const dump = recovery.dump();
    return Object.values(COLUMNS).map((name) => dump[name]);
  };
  same('initial', file.list('initial'), state());

  for (const [i, row] of rows.entries()) {
    const where = `rows[${i}]`;
    if (!Array.isArray(row)) throw new Difference(where, 'a row', row);
    const [value = 0] = rowNumbers(where, row, row[0] === 'start' ? 0 : 1);
    let got: unknown = null;
    switch (row[0]) {
      case 'w':
        nowUs += value;
        break;
      case 'usable':
        usable = value;
        break;
      case 'start':
        recovery.start();
        got = state();
        break;
      case 'sel': {
        draw = value;
        const admitted = recovery.admits(() => usable, nowUs);
        const recovering = recovery.isRecovering;
        got = [recovering, recovering ? !admitted : null, state()];
        break;
      }
      default:
        throw new Difference(where, 'a row this kind knows', row[0]);
    }
    same(`expect[${i}]`, expected[i], got);
  }
}
