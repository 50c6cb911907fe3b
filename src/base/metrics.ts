/**
 * Counts and figures in the text format of Prometheus, version 0.0.4. Our own, because the usual library brings 4.7 MB for
 * what these lines do.
 */

type Labels = Readonly<Record<string, string>>

export interface Sample {
  labels?: Labels
  value: number
}

/** What a scrape shows under one name. */
export interface Metric {
  readonly name: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  /** A suffix tells the parts of a histogram. */
  samples(): readonly (Sample & { suffix?: string })[] | Promise<readonly Sample[]>
}

export class Counter implements Metric {
  readonly type = 'counter'
  readonly name: string
  readonly help: string
  readonly #samples = new Map<string, { labels: Labels; value: number }>()

  constructor(name: string, help: string) {
    this.name = name
    this.help = help
  }

  add(labels: Labels): void {
    const key = Object.values(labels).join('\n')
    const sample = this.#samples.get(key)
    if (sample) sample.value++
    else this.#samples.set(key, { labels, value: 1 })
  }

  samples(): Sample[] {
    return [...this.#samples.values()]
  }
}

interface Observed {
  labels: Labels
  sum: number
  count: number
  /** Observations up to each bound, and not to the one before. */
  within: number[]
}

export class Histogram implements Metric {
  readonly type = 'histogram'
  readonly name: string
  readonly help: string
  readonly #bounds: readonly number[]
  readonly #observed = new Map<string, Observed>()

  /** @param bounds upper ends of the buckets, ascending */
  constructor(name: string, help: string, bounds: readonly number[]) {
    this.name = name
    this.help = help
    this.#bounds = bounds
  }

  observe(labels: Labels, value: number): void {
    const key = Object.values(labels).join('\n')
    let observed = this.#observed.get(key)
    if (!observed) {
      observed = { labels, sum: 0, count: 0, within: this.#bounds.map(() => 0) }
      this.#observed.set(key, observed)
    }
    observed.sum += value
    observed.count++
    const bucket = this.#bounds.findIndex((bound) => value <= bound)
    if (bucket >= 0) observed.within[bucket] = (observed.within[bucket] ?? 0) + 1
  }

  samples(): (Sample & { suffix: string })[] {
    return [...this.#observed.values()].flatMap(({ labels, sum, count, within }) => {
      let below = 0
      const buckets = this.#bounds.map((bound, i) => {
        below += within[i] ?? 0
        return { suffix: '_bucket', labels: { ...labels, le: String(bound) }, value: below }
      })
      return [
        ...buckets,
        { suffix: '_bucket', labels: { ...labels, le: '+Inf' }, value: count },
        { suffix: '_sum', labels, value: sum },
        { suffix: '_count', labels, value: count },
      ]
    })
  }
}

/** A figure that is read when it is asked for. */
export const figure = (
  type: 'counter' | 'gauge',
  name: string,
  help: string,
  samples: () => Sample[] | Promise<Sample[]>,
): Metric => ({ type, name, help, samples })

/** What has to be asked may take so long; then it is left out. */
const PATIENCE_MS = 2000

/** The whole scrape. What cannot be read now is left out, so that a store that is down does not hide the rest. */
export async function renderMetrics(metrics: readonly Metric[]): Promise<string> {
  const texts = await Promise.all(metrics.map((metric) => render(metric).catch(() => '')))
  return texts.join('')
}

async function render(metric: Metric): Promise<string> {
  const { name, type, help } = metric
  const lines = (await inTime(metric)).map(({ suffix = '', labels = {}, value }) => {
    const pairs = Object.entries(labels).map(([key, label]) => `${key}="${escape(label)}"`)
    return `${name}${suffix}${pairs.length > 0 ? `{${pairs.join(',')}}` : ''} ${value}\n`
  })
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`
}

async function inTime(metric: Metric): Promise<readonly (Sample & { suffix?: string })[]> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${metric.name} took too long`)), PATIENCE_MS)
  })
  try {
    return await Promise.race([metric.samples(), late])
  } finally {
    clearTimeout(timer)
  }
}

const escape = (label: string): string => label.replace(/[\\"]/g, '\\$&').replaceAll('\n', '\\n')
