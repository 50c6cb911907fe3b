import { isMap } from '../../base/json.ts'
import type { Json } from '../chat/json.ts'

/** Empty where there is none. */
export const mapOf = (value: unknown): Json => (isMap(value) ? value : {})

/** The objects of a list; empty where there is none. */
export const mapsOf = (value: unknown): Json[] => (Array.isArray(value) ? value.filter(isMap) : [])

export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
