// The package's own entry also loads what reports on the process and pushes to gateways: twenty times as much code.

declare module 'prom-client/lib/counter.js' {
  export { Counter as default } from 'prom-client';
}

declare module 'prom-client/lib/gauge.js' {
  export { Gauge as default } from 'prom-client';
}

declare module 'prom-client/lib/registry.js' {
  export { Registry as default } from 'prom-client';
}
