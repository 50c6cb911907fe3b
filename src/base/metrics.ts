/**
 * Counts and figures in the text formats of Prometheus, version 0.0.4, and OpenMetrics 1.0. Our own, because the usual library brings 4.7 MB for
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

/** What has no end, names that users make, may take so many series; what comes after is told apart no more. */
export const OTHER = 'other'

/** Series by their labels, a bound on their number. */
class SeriesMap<T> {
  readonly #series = new Map<string, { labels: Labels; held: T }>()
  readonly #most: number
  readonly #create: () => T

  constructor(most: number, create: () => T) {
    this.#most = most
    this.#create = create
  }

  /** Near the bound only the first label is told; at the bound none. */
  at(labels: Labels): T {
    const found = this.#series.get(keyOf(labels))
    if (found) return found.held
    const { size } = this.#series
    if (size < this.#most * 0.8) return this.#add(labels)
    const folded = foldedBut(size < this.#most - 1 ? Object.keys(labels)[0] : undefined, labels)
    return this.#series.get(keyOf(folded))?.held ?? this.#add(folded)
  }

  #add(labels: Labels): T {
    const held = this.#create()
    this.#series.set(keyOf(labels), { labels, held })
    return held
  }

  all(): Iterable<{ labels: Labels; held: T }> {
    return this.#series.values()
  }
}

const keyOf = (labels: Labels): string => Object.values(labels).join('\n')

const foldedBut = (kept: string | undefined, labels: Labels): Labels =>
  Object.fromEntries(Object.entries(labels).map(([name, label]) => [name, name === kept ? label : OTHER]))

interface Bounds {
  /** Series at most; of a histogram every line counts. */
  most?: number
  /** What is added counts so many to one of what is shown, so that sums stay whole numbers. */
  parts?: number
}

export class Counter implements Metric {
  readonly type = 'counter'
  readonly name: string
  readonly help: string
  readonly #parts: number
  readonly #series: SeriesMap<{ value: number }>

  constructor(name: string, help: string, { most = Infinity, parts = 1 }: Bounds = {}) {
    this.name = name
    this.help = help
    this.#parts = parts
    this.#series = new SeriesMap(most, () => ({ value: 0 }))
  }

  add(labels: Labels, value = 1): void {
    this.at(labels).value += value
  }

  /** The series itself, for who adds to it often. */
  at(labels: Labels): { value: number } {
    return this.#series.at(labels)
  }

  samples(): Sample[] {
    return Array.from(this.#series.all(), ({ labels, held }) => ({ labels, value: held.value / this.#parts }))
  }
}

class Observed {
  sum = 0
  count = 0
  /** Observations up to each bound, and not to the one before. */
  readonly within: number[]
  readonly #bounds: readonly number[]

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds
    this.within = bounds.map(() => 0)
  }

  add(value: number): void {
    this.sum += value
    this.count++
    let bucket = 0
    for (const bound of this.#bounds) {
      if (value <= bound) {
        this.within[bucket] = (this.within[bucket] ?? 0) + 1
        return
      }
      bucket++
    }
  }
}

export class Histogram implements Metric {
  readonly type = 'histogram'
  readonly name: string
  readonly help: string
  readonly #bounds: readonly number[]
  readonly #series: SeriesMap<Observed>

  /** @param bounds upper ends of the buckets, ascending */
  constructor(name: string, help: string, bounds: readonly number[], { most = Infinity }: Bounds = {}) {
    this.name = name
    this.help = help
    this.#bounds = bounds
    this.#series = new SeriesMap(Math.floor(most / (bounds.length + 3)), () => new Observed(bounds))
  }

  observe(labels: Labels, value: number): void {
    this.at(labels).add(value)
  }

  /** The series itself, for who adds to it often. */
  at(labels: Labels): { add(value: number): void } {
    return this.#series.at(labels)
  }

  samples(): (Sample & { suffix: string })[] {
    return [...this.#series.all()].flatMap(({ labels, held: { sum, count, within } }) => {
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

export type MetricsFormat = 'prometheus' | 'openmetrics'

interface Scrape {
  format?: MetricsFormat
  /** Which series are shown. */
  shows?: (labels: Labels) => boolean
}

/** The whole scrape. What cannot be read now is left out, so that a store that is down does not hide the rest. */
export async function renderMetrics(
  metrics: readonly Metric[],
  { format = 'prometheus', shows = () => true }: Scrape = {},
): Promise<string> {
  const texts = await Promise.all(metrics.map((metric) => render(metric, format, shows).catch(() => '')))
  return texts.join('') + (format === 'openmetrics' ? '# EOF\n' : '')
}

async function render(metric: Metric, format: MetricsFormat, shows: (labels: Labels) => boolean): Promise<string> {
  const { name, type, help } = metric
  const lines = (await inTime(metric))
    .filter(({ labels = {} }) => shows(labels))
    .map(({ suffix = '', labels = {}, value }) => {
      const pairs = Object.entries(labels).map(([key, label]) => `${key}="${escape(label)}"`)
      return `${name}${suffix}${pairs.length > 0 ? `{${pairs.join(',')}}` : ''} ${value}\n`
    })
  // OpenMetrics names a counter without its suffix, and its samples with it.
  const family = format === 'openmetrics' && type === 'counter' ? name.replace(/_total$/, '') : name
  return `# HELP ${family} ${help}\n# TYPE ${family} ${type}\n${lines.join('')}`
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
