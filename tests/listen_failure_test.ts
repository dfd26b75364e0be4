/**
 * Verifies that the error of a server that cannot listen explains the reason, and names the
 * relevant configuration keys and files.
 */
import { expect, test } from "bun:test";
import { generateKeyPairSync } from "node:crypto";
import { DiskError } from "../src/base/errors.ts";
import { parseConfig } from "../src/config/mod.ts";
import { listenFailure } from "../src/listen_failure.ts";

const CERTIFICATE = `-----BEGIN CERTIFICATE-----
MIIBdjCCARugAwIBAgIUI/iZMmyEJWiSpH40t88i+tC3wl4wCgYIKoZIzj0EAwIw
DzENMAsGA1UEAwwEdGVzdDAgFw0yNjExMjMxMDQ1MTlaGA8yMTI2MTAzMDEwNDUx
OVowDzENMAsGA1UEAwwEdGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABIq3
MIy32Kiw2MIzDNY6H6k4ALxzgI2GkNIyrsdyUC+GuXtajbC5N639NrRwT9T3kPLE
agZFEnJ2TNWLG8EgVFKjUzBRMB0GA1UdDgQWBBQnj0SOMk6YMudKRqMrze9hgb9z
YTAfBgNVHSMEGDAWgBQnj0SOMk6YMudKRqMrze9hgb9zYTAPBgNVHRMBAf8EBTAD
AQH/MAoGCCqGSM49BAMCA0kAMEYCIQCuz2rkx6Of2AfbUpYIYG2jFU1+ID9Yp0SG
55kNqvF0QQIhANcL79NfpcX7IQI8vIZMh/EtweoWoC7AMAQ+Jr1StdHy
-----END CERTIFICATE-----
`;

function newKey(): string {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return privateKey.export({ type: "pkcs8", format: "pem" });
}

/**
 * Returns the error message of a server that starts with configuration files of the given contents
 * and fails to listen.
 */
function failureWith(files: Readonly<Record<string, string>>): string {
  const toml = "server = { tls_cert = '/c.pem', tls_key = '/k.pem' }";
  return listenFailure(new Error("NO_START_LINE"), parseConfig(toml, "test", {}).config.server, {
    readFile(path) {
      const text = files[path];
      if (text === undefined) throw new DiskError("ENOENT", path, "read");
      return Buffer.from(text);
    },
  });
}

test("listenFailure names the configuration key and the file that make TLS fail", () => {
  const key = newKey();
  expect(failureWith({})).toBe(
    "cannot use TLS: server.tls_cert /c.pem cannot be read (ENOENT): there is no such file or directory",
  );
  expect(failureWith({ "/c.pem": CERTIFICATE })).toBe(
    "cannot use TLS: server.tls_key /k.pem cannot be read (ENOENT): there is no such file or directory",
  );
  expect(failureWith({ "/c.pem": "no certificate", "/k.pem": key })).toBe(
    "cannot use TLS: server.tls_cert /c.pem must contain a certificate in PEM form",
  );
  expect(failureWith({ "/c.pem": CERTIFICATE, "/k.pem": CERTIFICATE })).toBe(
    "cannot use TLS: server.tls_key /k.pem must contain an unencrypted private key in " +
      "PEM form",
  );
  expect(failureWith({ "/c.pem": CERTIFICATE, "/k.pem": key })).toBe(
    "cannot use TLS: server.tls_key /k.pem does not belong to the certificate server.tls_cert /c.pem",
  );
});

test("listenFailure names the address, and says whether it belongs to this machine", () => {
  const { server } = parseConfig("server = { host = 'elsewhere', port = 80 }", "test", {
    env: { TIDEMARK_JWT_SECRET: "a secret for the network, with 32 bytes and more" },
  }).config;
  const disk = { readFile: (): Uint8Array => new Uint8Array() };
  const failure = (code: string): string =>
    listenFailure(Object.assign(new Error(`${code}: listen`), { code }), server, disk);
  const sentence =
    'cannot listen on elsewhere:80: server.host is "elsewhere", but must be an ' +
    "IP address or a host name of this machine";
  for (const code of ["EAI_AGAIN", "EINVAL", "ENOTFOUND", "EADDRNOTAVAIL"]) {
    expect(failure(code)).toBe(`${sentence} (${code}: listen)`);
  }
  expect(failure("ENOENT")).toBe(`${sentence} (ENOENT)`);
  expect(failure("EADDRINUSE")).toBe("cannot listen on elsewhere:80: EADDRINUSE: listen");
});
