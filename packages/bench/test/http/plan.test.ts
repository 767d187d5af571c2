import { expect, it } from '@jest/globals';
import { groupsOf, isLight, planOf } from '../../src/http/plan.js';

it('compares each server with the bare one of its framework, which meets every light load', () => {
  const plan = planOf({ quick: false, workloads: ['cpu'], arms: ['auto', 'protect', 'koa-auto'] });
  const groups = groupsOf(plan);
  expect(groups.map(({ bare, lives }) => [bare, lives.map(({ arm }) => arm)])).toEqual([
    ['none', ['auto', 'protect']],
    ['koa', ['koa-auto']],
  ]);
  expect(groups[0]?.light).toEqual([
    { load: { factor: 0.5, client: 'patient' }, arms: ['none', 'auto'] },
    { load: { factor: 0.8, client: 'patient' }, arms: ['none', 'auto', 'protect'] },
  ]);
});

it('gives a bare server that is asked for itself its light loads once', () => {
  const [group] = groupsOf(
    planOf({ quick: false, workloads: ['post'], arms: ['none'], factors: [0.5, 3] }),
  );
  expect(group?.light).toEqual([{ load: { factor: 0.5, client: 'hangUp' }, arms: ['none'] }]);
});

it('has a bare server beside each light load that is judged', () => {
  const light = groupsOf(planOf({ quick: true })).flatMap((group) =>
    group.light.map(({ load, arms }) => `${group.workload} ${load.factor}: ${arms.join(', ')}`),
  );
  expect(light).toEqual(['cpu 0.8: none, auto', 'async 0.8: none, auto', 'mixed 0.8: none, auto']);
});

it('lets a limit that comes out of a calm learn at 1.5 ×, before it is judged', () => {
  const calm = planOf({ quick: false }).filter((life) => life.loads.some(isLight));
  expect(calm.length).toBeGreaterThan(20);
  expect(calm.map((life) => life.loads.find((load) => !isLight(load))?.factor)).toEqual(
    calm.map(() => 1.5),
  );
});
