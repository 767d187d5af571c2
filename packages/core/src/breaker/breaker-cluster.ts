/** What one node of a cluster shows the others. */
export interface ClusterNode {
  /**
   * For how long it has been failing, in microseconds: from a first failure until enough good calls in a row prove
   * it well. NaN while it is well; `Infinity` while it takes no ordinary calls (open, half-open) and so shows nothing.
   */
  failingForUs(nowUs: number): number;
}

/**
 * Asks the other nodes of the cluster: which share of them is well, 0 to 1; NaN if none takes calls. One that has
 * failed for `commonFaultUs` or longer counts as well: it has a fault of its own, which says nothing about ours.
 */
export type Fellows = (nowUs: number, commonFaultUs: number) => number;

/** The answer of `nodes`, without `self`, as {@link Fellows} gives it. */
export function wellRatio(
  nodes: Iterable<ClusterNode>,
  self: ClusterNode,
  nowUs: number,
  commonFaultUs: number,
): number {
  let asked = 0;
  let failing = 0;
  for (const node of nodes) {
    if (node === self) continue;
    const forUs = node.failingForUs(nowUs);
    if (forUs === Number.POSITIVE_INFINITY) continue;
    asked += 1;
    if (forUs < commonFaultUs) failing += 1; // NaN is not
  }
  return asked === 0 ? Number.NaN : 1 - failing / asked;
}

/** The breakers of the nodes of one service. Holds them weakly. */
export interface BreakerCluster {
  /** Takes a node in; the answer is how that node asks the others. */
  join(node: ClusterNode): Fellows;
}

/**
 * Lets the breakers of one service's nodes see each other, so that a fault of all is told from a fault of one:
 *
 * ```ts
 * const cluster = createBreakerCluster();
 * const breakers = urls.map((url) => new CircuitBreaker({ name: url, cluster }));
 * ```
 */
export function createBreakerCluster(): BreakerCluster {
  const members = new Set<WeakRef<ClusterNode>>();
  function* alive(): Generator<ClusterNode> {
    for (const ref of members) {
      const node = ref.deref();
      if (node === undefined) members.delete(ref);
      else yield node;
    }
  }
  return {
    join(self) {
      members.add(new WeakRef(self));
      return (nowUs, commonFaultUs) => wellRatio(alive(), self, nowUs, commonFaultUs);
    },
  };
}
