import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { settle } from './virtual-clock.js';

let collect: (() => void) | undefined;

/** Bytes of V8's heap that are still in use once all garbage is collected, and finalizers have run. */
export async function liveHeap(): Promise<number> {
  setFlagsFromString('--expose-gc');
  collect ??= runInNewContext('gc') as () => void;
  // finalizers run in a turn after the collection that found the dead
  for (let i = 0; i < 3; i++) {
    collect();
    await settle();
  }
  return process.memoryUsage().heapUsed;
}
