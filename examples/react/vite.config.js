import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

export default defineConfig({
  plugins: [react()],
  define: {
    __SERVER__: JSON.stringify(process.env.TIDEMARK_URL ?? "http://127.0.0.1:2900"),
  },
});
