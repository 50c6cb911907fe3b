/** A result in a log has a bound: logs are rotated, and the API server carries every byte. */
export const MAX_RESULT_BYTES = 4 * 1024 * 1024

/**
 * Installs the requirements, runs the code, and then writes the result file into the log, in lines behind a random marker:
 * a job shares no disk with us, and a termination message has 4 KiB only. The last line has the exit code, the size and
 * the hash of the result.
 */
export const DRIVER = `import base64, hashlib, os, subprocess, sys

marker, code, requirements, packages, limit = sys.argv[1:6]
status = 0
if os.path.getsize(requirements) > 0:
    pip = ["-m", "pip", "install", "--quiet", "--no-cache-dir", "--disable-pip-version-check", "--target", packages]
    status = subprocess.call([sys.executable, *pip, "-r", requirements])
    os.environ["PYTHONPATH"] = packages
if status == 0:
    status = subprocess.call([sys.executable, "-u", code])
result = b""
if os.path.isfile(os.environ["OUTPUT_FILE"]):
    with open(os.environ["OUTPUT_FILE"], "rb") as file:
        result = file.read()
if len(result) <= int(limit):
    text = base64.b64encode(result).decode()
    for at in range(0, len(text), 8192):
        print(marker, "data", text[at : at + 8192])
print(marker, "end", 128 - status if status < 0 else status, len(result), hashlib.sha256(result).hexdigest(), flush=True)
`
