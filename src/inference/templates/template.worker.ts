import { serveChannel } from '../../runtime/worker-channel.ts';
import type { TemplateCalls } from './chat-templates.ts';
import { TemplateSandbox } from './template-sandbox.ts';

declare const self: Worker;

const opening = TemplateSandbox.open();

serveChannel<TemplateCalls>(
  self,
  (batch, server) => {
    void opening.then((sandbox) => {
      for (const call of batch) {
        try {
          call.resolve(sandbox.render(call.request.template, call.request.contextJson));
        } catch (error) {
          call.reject(error);
        }
      }
      server.flush();
    });
  },
  () => undefined,
);
