/**
 * Defines the forms of configuration values that are text, such as hosts, origins and claims. Each
 * form says in words what it accepts, and errors quote these words.
 */
import { isIPv6 } from "node:net";
import { isIssuer } from "../auth/mod.ts";
import { isBasePath } from "../base/base_path.ts";
import { rangeFromText } from "../base/ip_address.ts";
import { isOutboundHost } from "../base/outbound_hosts.ts";
import type { TextForm } from "./key_rule.ts";

export const HOST: TextForm = {
  pattern: /^[^\s/]+$/,
  isFitting: (host) => !host.includes(":") || isIPv6(host.replace(/^\[(.*)\]$/, "$1")),
  expected:
    "an IP address or a host name without a scheme or port, such as 127.0.0.1, ::1 or localhost",
};
export const ORIGIN: TextForm = {
  pattern: /^https?:\/\/(?:[\w.-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i,
  expected: "an origin such as https://db.example.com or http://127.0.0.1:2900",
};
export const BASE_PATH: TextForm = {
  pattern: /^\//,
  isFitting: isBasePath,
  expected:
    "a path such as /db, without a trailing slash; it must not begin with /api, /health, /metrics, /ui or /v1",
};
export const ORIGIN_OR_ANY: TextForm = {
  pattern:
    /^(?:\*|[a-z][a-z0-9+.-]{0,31}:\/\/(?:(?:\*\.)?[\w.-]+|\[[0-9a-f:.]+\])(?::(?:\d{1,5}|\*))?)$/i,
  expected:
    "an origin such as https://app.example.com, http://localhost:*, https://*.example.com or capacitor://localhost, or *",
};
export const ADDRESS: TextForm = {
  pattern: /^(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9a-f:.]*:[0-9a-f:.]*)(?:\/\d{1,3})?$/i,
  isFitting: (range) => rangeFromText(range) !== undefined,
  expected: "an IP address or a range such as 10.0.0.0/8",
};
export const OUTBOUND_HOST: TextForm = {
  pattern: /^[^\s"]{1,253}$/,
  isFitting: isOutboundHost,
  expected: "a host name, *.example.com, an IP address or a range such as 10.0.0.0/8",
};
export const ABSOLUTE_PATH: TextForm = {
  pattern: /^(?:\/(?!\.{1,2}(?:\/|$))[^/\0]+)+\/?$/,
  expected: "an absolute path below /, such as /var/backups, without . or .. segments",
};
export const HOST_NAME: TextForm = { pattern: /^[a-z0-9.-]{1,253}$/i, expected: "a host name" };
export const HTTP_URL: TextForm = {
  pattern: /^https?:\/\/[^\s#]+$/i,
  isFitting: (url) => {
    const parsed = URL.parse(url);
    return parsed !== null && parsed.username === "" && parsed.password === "";
  },
  expected:
    "a URL such as https://app.example.com/accounts, without user information or a fragment",
};
export const NOTICE_SECRET: TextForm = {
  pattern: /^[ -~]{16,256}$/,
  expected: "16 to 256 ASCII characters",
};
export const MIME: TextForm = {
  pattern: /^[a-z0-9!#$&^_.+-]+\/(?:\*|[a-z0-9!#$&^_.+-]+)$/i,
  expected: "a media type such as image/png or image/*",
};

export const ISSUER: TextForm = {
  pattern: /^https?:\/\/[!-~]{1,500}$/,
  isFitting: isIssuer,
  expected:
    "the URL in the iss claim of its tokens, such as https://accounts.google.com; it must use https unless its host is this machine",
};
export const CLAIM_NAME: TextForm = { pattern: /^[!-~]{1,128}$/, expected: "a claim name" };
export const KEPT_CLAIM: TextForm = {
  ...CLAIM_NAME,
  isFitting: (name) => !OWN_CLAIMS.has(name),
  expected: "the name of a claim other than iss, sub, role or email",
};
export const SCOPE: TextForm = {
  pattern: /^[!#-[\]-~]{1,128}$/,
  expected: "a scope such as profile",
};

/** The claims that this server's own tokens contain. No provider may set them. */
const OWN_CLAIMS: ReadonlySet<string> = new Set(["iss", "sub", "role", "email"]);
