import { expect, test } from 'vitest'
import { Counter, figure, Histogram, renderMetrics } from '../../src/base/metrics.ts'

test('counters and figures, with labels escaped', async () => {
  const counter = new Counter('c_total', 'Counts.')
  counter.add({ path: 'a"b\\c\nd', status: '200' })
  counter.add({ path: 'a"b\\c\nd', status: '200' })
  counter.add({ path: 'x', status: '404' })
  const gauge = figure('gauge', 'g', 'Is.', async () => [{ value: 1.5 }])
  expect(await renderMetrics([counter, gauge])).toBe(
    [
      '# HELP c_total Counts.',
      '# TYPE c_total counter',
      'c_total{path="a\\"b\\\\c\\nd",status="200"} 2',
      'c_total{path="x",status="404"} 1',
      '# HELP g Is.',
      '# TYPE g gauge',
      'g 1.5',
      '',
    ].join('\n'),
  )
})

test('a histogram counts up to each bound, the bound included', async () => {
  const histogram = new Histogram('h', 'Takes.', [0.1, 1])
  for (const value of [0.05, 0.1, 0.5, 7]) histogram.observe({ route: '/' }, value)
  expect((await renderMetrics([histogram])).split('\n').slice(2)).toEqual([
    'h_bucket{route="/",le="0.1"} 2',
    'h_bucket{route="/",le="1"} 3',
    'h_bucket{route="/",le="+Inf"} 4',
    'h_sum{route="/"} 7.65',
    'h_count{route="/"} 4',
    '',
  ])
})

test('a figure that cannot be read is left out, and hides no other', async () => {
  const broken = figure('gauge', 'b', 'Breaks.', () => Promise.reject(new Error('down')))
  const good = figure('gauge', 'g', 'Is.', () => [{ value: 1 }])
  expect(await renderMetrics([broken, good])).toBe('# HELP g Is.\n# TYPE g gauge\ng 1\n')
})
