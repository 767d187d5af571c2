import { existsSync, readdirSync } from 'node:fs';

// every workspace that has a jest config of its own
const workspaces = ['packages', 'compat', 'examples'].flatMap((group) => {
  const folder = new URL(`./${group}/`, import.meta.url);
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((name) => existsSync(new URL(`${name}/jest.config.mjs`, folder)))
    .map((name) => `<rootDir>/${group}/${name}`);
});

/** @type {import('jest').Config} */
export default { projects: workspaces };
