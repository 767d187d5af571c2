// What the arms measure with: processor time, which leaves out whoever shares the machine.

/** Nanoseconds of processor time per call; `call` is handed 0, 1, 2 … */
export async function nsPerCall(call, calls, { awaits }) {
  const from = process.cpuUsage();
  if (awaits) for (let i = 0; i < calls; i++) await call(i);
  else for (let i = 0; i < calls; i++) call(i);
  const { user, system } = process.cpuUsage(from);
  return ((user + system) * 1000) / calls;
}

/** The lower quartile of so many rounds, the first few left out: noise only ever adds. */
export async function steadyNs(call, calls, { awaits, warmUp = 4, rounds = 7 }) {
  for (let i = 0; i < warmUp; i++) await nsPerCall(call, calls, { awaits });
  const figures = [];
  for (let i = 0; i < rounds; i++) figures.push(await nsPerCall(call, calls, { awaits }));
  figures.sort((a, b) => a - b);
  return figures[Math.floor(rounds / 4)];
}
