// Tool loops of JavaScript clients. usage: node_clients.mjs CLIENT URL MODEL RESULT
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const require = createRequire(process.cwd() + '/');
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const [client, url, model, result] = process.argv.slice(2);
const asked = 'What is the weather in Ulm?';
const parameters = { type: 'object', properties: { city: { type: 'string', description: 'the city' } }, required: ['city'] };
const declared = { name: 'get_weather', description: 'The weather in a city', parameters };
const tool = { type: 'function', function: declared };

const clients = {
  async openai () {
    const { OpenAI } = await load('openai');
    const api = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0 });
    const weather = { type: 'function', function: { ...declared, function: async () => result, parse: JSON.parse } };
    const runner = api.chat.completions.runTools({ model, messages: [{ role: 'user', content: asked }], tools: [weather], stream: true });
    return await runner.finalContent();
  },
  async anthropic () {
    const { Anthropic } = await load('@anthropic-ai/sdk');
    const api = new Anthropic({ baseURL: url, apiKey: 'none', maxRetries: 0 });
    const tools = [{ name: 'get_weather', description: 'The weather in a city', input_schema: parameters }];
    const messages = [{ role: 'user', content: asked }];
    for (let turn = 0; turn < 4; turn++) {
      const message = await api.messages.stream({ model, max_tokens: 400, messages, tools }).finalMessage();
      const calls = message.content.filter(block => block.type === 'tool_use');
      if (!calls.length) return message.content.map(block => block.text ?? '').join('');
      messages.push({ role: 'assistant', content: message.content });
      messages.push({ role: 'user', content: calls.map(call => ({ type: 'tool_result', tool_use_id: call.id, content: result })) });
    }
  },
  async ollama () {
    const { Ollama } = await load('ollama');
    const api = new Ollama({ host: url });
    const messages = [{ role: 'user', content: asked }];
    for (let turn = 0; turn < 4; turn++) {
      const { message } = await api.chat({ model, messages, tools: [tool] });
      if (!message.tool_calls?.length) return message.content;
      messages.push(message, ...message.tool_calls.map(call => ({ role: 'tool', tool_name: call.function.name, content: result })));
    }
  },
  async google () {
    const { GoogleGenAI } = await load('@google/genai');
    const api = new GoogleGenAI({ apiKey: 'none', httpOptions: { baseUrl: url } });
    const contents = [{ role: 'user', parts: [{ text: asked }] }];
    const config = { tools: [{ functionDeclarations: [{ ...declared, parameters: undefined, parametersJsonSchema: parameters }] }] };
    for (let turn = 0; turn < 4; turn++) {
      const parts = [];
      for await (const chunk of await api.models.generateContentStream({ model, contents, config })) {
        parts.push(...(chunk.candidates?.[0]?.content?.parts ?? []));
      }
      const calls = parts.filter(part => part.functionCall);
      if (!calls.length) return parts.map(part => part.text ?? '').join('');
      contents.push({ role: 'model', parts });
      contents.push({ role: 'user', parts: calls.map(({ functionCall: { id, name } }) => ({ functionResponse: { id, name, response: { output: result } } })) });
    }
  },
};
console.log(await clients[client]());
