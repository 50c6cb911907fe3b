import { parseTimestamp } from '../../../base/clock.ts'
import { FunctionError } from '../errors.ts'
import { parseDuration } from '../duration.ts'
import { fixed, type Arguments, type FunctionTable } from './arguments.ts'

/** Contract: runbook.md 3.3, group time. Times are RFC 3339 text. */
export const TIME_FUNCTIONS: FunctionTable = {
  timestamp: fixed(0, (_, scope) => {
    if (scope.now === undefined) throw new FunctionError('the start of the run is not known here')
    return text(scope.now)
  }),
  timeadd: fixed(2, (a) => {
    const negative = a.text(1).startsWith('-')
    const duration = parseDuration(a.text(1).slice(negative ? 1 : 0))
    if (duration === undefined) throw new FunctionError(`"${a.text(1)}" is no duration such as "1h30m"`, 1)
    return text(time(a, 0) + (negative ? -duration : duration))
  }),
  timecmp: fixed(2, (a) => Math.sign(time(a, 0) - time(a, 1))),
  formatdate: fixed(2, (a) => formatDate(a.text(0), time(a, 1), offsetMinutes(a.text(1)))),
}

/** Whole seconds have no fraction, as RFC 3339 is customarily written. */
const text = (ms: number): string => {
  const date = new Date(ms)
  if (Number.isNaN(date.getTime())) throw new FunctionError('the time is out of range')
  return date.toISOString().replace('.000Z', 'Z')
}

const FULL = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/

function time(a: Arguments, index: number): number {
  const value = a.text(index)
  const ms = FULL.test(value) ? parseTimestamp(value) : undefined
  if (ms === undefined) throw new FunctionError(`"${value.slice(0, 40)}" is no RFC 3339 time`, index)
  return ms
}

function offsetMinutes(value: string): number {
  const [, sign, hours, minutes] = /([+-])(\d\d):(\d\d)$/.exec(value) ?? []
  return sign === undefined ? 0 : (Number(hours) * 60 + Number(minutes)) * (sign === '-' ? -1 : 1)
}

const MONTHS = 'January February March April May June July August September October November December'.split(' ')
const DAYS = 'Sunday Monday Tuesday Wednesday Thursday Friday Saturday'.split(' ')
const TOKEN = /'((?:[^']|'')*)'|([a-zA-Z])\2*|[^a-zA-Z']+|'/g

/** Letters as in HCL's formatdate: `YYYY MM DD hh mm ss Z`, text in single quotes. The time keeps its offset. */
function formatDate(spec: string, ms: number, offset: number): string {
  const date = new Date(ms + offset * 60_000)
  const zone = (colon: string, zulu: boolean): string => {
    if (zulu && offset === 0) return 'Z'
    const minutes = Math.abs(offset)
    return `${offset < 0 ? '-' : '+'}${two(Math.floor(minutes / 60))}${colon}${two(minutes % 60)}`
  }
  const hour = date.getUTCHours()
  const month = MONTHS[date.getUTCMonth()] ?? ''
  const day = DAYS[date.getUTCDay()] ?? ''
  const fields: Record<string, string> = {
    YYYY: String(date.getUTCFullYear()).padStart(4, '0'),
    YY: two(date.getUTCFullYear() % 100),
    MMMM: month,
    MMM: month.slice(0, 3),
    MM: two(date.getUTCMonth() + 1),
    M: String(date.getUTCMonth() + 1),
    DD: two(date.getUTCDate()),
    D: String(date.getUTCDate()),
    EEEE: day,
    EEE: day.slice(0, 3),
    hh: two(hour),
    h: String(hour),
    HH: two(hour % 12 || 12),
    H: String(hour % 12 || 12),
    AA: hour < 12 ? 'AM' : 'PM',
    aa: hour < 12 ? 'am' : 'pm',
    mm: two(date.getUTCMinutes()),
    m: String(date.getUTCMinutes()),
    ss: two(date.getUTCSeconds()),
    s: String(date.getUTCSeconds()),
    ZZZZZ: zone(':', false),
    ZZZZ: zone('', false),
    ZZZ: offset === 0 ? 'UTC' : zone('', false),
    Z: zone(':', true),
  }
  return spec.replace(TOKEN, (token, quoted?: string, letter?: string) => {
    if (quoted !== undefined) return quoted.replaceAll("''", "'")
    if (token === "'") throw new FunctionError('text in single quotes does not end', 0)
    if (letter === undefined) return token
    const field = fields[token]
    if (field === undefined) throw new FunctionError(`unknown letters "${token}", put text in single quotes`, 0)
    return field
  })
}

const two = (value: number): string => String(value).padStart(2, '0')
