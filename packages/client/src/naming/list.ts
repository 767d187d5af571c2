import { type Naming, type NodeValue, resolveNodes } from './naming.js';

/** A fixed list, checked at once. */
export function listNaming(nodes: readonly NodeValue[]): Naming {
  resolveNodes('nodes', nodes);
  return {
    watch(listener) {
      listener.update(nodes);
      return () => {};
    },
  };
}
