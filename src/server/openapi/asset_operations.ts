/** Describes the operations of the endpoints that deliver the client and the admin page. */
import type { Operation } from "../http/operation.ts";
import { inHeader, inPath } from "./operations.ts";
import { TEXT } from "./schema_forms.ts";

export const CLIENT_OPERATIONS: Readonly<Record<"script" | "types", Operation>> = {
  script: {
    id: "clientScript",
    tag: "client",
    summary: "The client as a JavaScript module, for pages of any origin",
    access: "anyone",
    parameters: [inHeader("If-None-Match", "ETags that the caller already has")],
    answers: {
      200: {
        description: "The module",
        content: { "text/javascript": TEXT },
        headers: { ETag: "Changes with the content", "X-TypeScript-Types": "The URL of its types" },
      },
      304: { description: "The caller has the current content" },
    },
    errors: { 404: ["not_found"] },
  },
  types: {
    id: "clientTypes",
    tag: "client",
    summary: "The TypeScript declarations of the client",
    access: "anyone",
    parameters: [inHeader("If-None-Match", "ETags that the caller already has")],
    answers: {
      200: {
        description: "The declarations",
        content: { "application/typescript": TEXT },
        headers: { ETag: "Changes with the content" },
      },
      304: { description: "The caller has the current content" },
    },
  },
};

export const UI_OPERATIONS: Readonly<Record<"asset" | "page" | "root", Operation>> = {
  root: {
    id: "root",
    tag: "ui",
    summary: "Redirects to the admin page",
    access: "anyone",
    answers: { 302: { description: "To /ui", headers: { Location: "/ui" } } },
  },
  page: {
    id: "uiPage",
    tag: "ui",
    summary: "The admin page",
    access: "anyone",
    answers: { 200: { description: "The page", content: { "text/html": TEXT } } },
  },
  asset: {
    id: "uiAsset",
    tag: "ui",
    summary: "Assets of the admin page; a path without extension is the page itself",
    access: "anyone",
    parameters: [inPath("path", "May contain slashes")],
    answers: { 200: { description: "The asset", content: { "*/*": { description: "Bytes" } } } },
    errors: { 404: ["not_found"] },
  },
};
