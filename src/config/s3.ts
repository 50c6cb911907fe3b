import { ConfigError } from './errors.ts'

/** How to reach S3, from the environment that every S3 program reads. Secrets: never printed. */
export interface S3Config {
  endpoint: string
  region: string
  accessKeyId: string | undefined
  secretAccessKey: string | undefined
  sessionToken: string | undefined
}

/**
 * `AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL`, else Amazon's in the region; `AWS_REGION`, `AWS_DEFAULT_REGION`, else us-east-1.
 * An empty variable is as good as none.
 */
export function readS3(env: Readonly<Record<string, string | undefined>>): S3Config {
  const first = (...names: string[]): string | undefined => names.map((name) => env[name]).find((value) => value)
  const region = first('AWS_REGION', 'AWS_DEFAULT_REGION') ?? 'us-east-1'
  return {
    endpoint: first('AWS_ENDPOINT_URL_S3', 'AWS_ENDPOINT_URL') ?? `https://s3.${region}.amazonaws.com`,
    region,
    accessKeyId: first('AWS_ACCESS_KEY_ID'),
    secretAccessKey: first('AWS_SECRET_ACCESS_KEY'),
    sessionToken: first('AWS_SESSION_TOKEN'),
  }
}

/** @throws ConfigError when the driver s3 could not work with it. */
export function requireS3<T extends S3Config>(s3: T): T & { accessKeyId: string; secretAccessKey: string } {
  const { accessKeyId, secretAccessKey, endpoint } = s3
  const key = 'storage.content_driver'
  if (accessKeyId === undefined || secretAccessKey === undefined) {
    throw new ConfigError(key, `${key} s3 needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment`)
  }
  if (!/^https?:\/\/[^@]+$/.test(endpoint) || !URL.canParse(endpoint)) {
    throw new ConfigError(key, `${key} s3: AWS_ENDPOINT_URL must be an http or https URL without credentials`)
  }
  return { ...s3, accessKeyId, secretAccessKey }
}
