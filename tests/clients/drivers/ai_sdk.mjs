// Tool loops of the AI SDK. usage: ai_sdk.mjs PROVIDER URL MODEL RESULT
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const require = createRequire(process.cwd() + '/');
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const { streamText, tool, jsonSchema, stepCountIs, isStepCount } = await load('ai');
const [provider, url, model, result] = process.argv.slice(2);

const models = {
  chat: async () => (await load('@ai-sdk/openai-compatible')).createOpenAICompatible({ name: 'u', baseURL: `${url}/v1` })(model),
  responses: async () => (await load('@ai-sdk/openai')).createOpenAI({ apiKey: 'none', baseURL: `${url}/v1` }).responses(model),
  google: async () => (await load('@ai-sdk/google')).createGoogleGenerativeAI({ apiKey: 'none', baseURL: `${url}/v1beta` })(model),
  anthropic: async () => (await load('@ai-sdk/anthropic')).createAnthropic({ apiKey: 'none', baseURL: `${url}/v1` })(model),
};
const stream = streamText({
  model: await models[provider](),
  prompt: 'What is the weather in Ulm?',
  temperature: 0,
  maxRetries: 0,
  stopWhen: (stepCountIs ?? isStepCount)(4),
  tools: {
    get_weather: tool({
      description: 'The weather in a city',
      inputSchema: jsonSchema({
        type: 'object',
        properties: { city: { type: 'string', description: 'the city' } },
        required: ['city'],
      }),
      execute: async () => result,
    }),
  },
  onError: ({ error }) => { console.error(error); process.exit(1); },
});
let text = '';
for await (const part of stream.textStream) text += part;
console.log(text);
