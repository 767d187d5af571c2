// What the arms measure with: processor time, which leaves out whoever shares the machine.

/** Nanoseconds of processor time per call; `call` is handed 0, 1, 2 … */
export async function nsPerCall(call, calls, { awaits }) {
  const from = process.cpuUsage();
  if (awaits) for (let i = 0; i < calls; i++) await call(i);
  else for (let i = 0; i < calls; i++) call(i);
  const { user, system } = process.cpuUsage(from);
  return ((user + system) * 1000) / calls;
}

/**
 * The lower quartile of so many rounds, the first few left out: noise only ever adds. With `turns`, each round waits for
 * the bench's word, while other arms have theirs.
 */
export async function steadyNs(call, calls, { awaits, warmUp = 4, rounds = 7, turns = true }) {
  for (let i = 0; i < warmUp; i++) await nsPerCall(call, calls, { awaits });
  const figures = [];
  for (let i = 0; i < rounds; i++) {
    if (turns) await turn();
    figures.push(await nsPerCall(call, calls, { awaits }));
  }
  figures.sort((a, b) => a - b);
  return figures[Math.floor(rounds / 4)];
}

/** Ends the arm with its figures: to the bench that waits for them, or to whoever started it by hand. */
export function finish(figures) {
  if (process.send === undefined) {
    console.log(JSON.stringify(figures));
    process.exit(); // a peer's timers would keep the process
  }
  process.send({ figures }, () => process.exit());
}

/** Waits until the bench says that this arm may go on; the others stand still meanwhile. */
async function turn() {
  if (process.send === undefined) return;
  process.send('waiting');
  await new Promise((resolve) => process.once('message', resolve));
}
