// The words of the site's controls, by language: what a person of that language reads.
export const WORDS = {
  en: { send: 'Send prompt', stop: 'Stop streaming', copy: 'Copy response', voice: 'Start Voice', box: 'Chat with ChatGPT', said: 'ChatGPT said:' },
  de: { send: 'Prompt senden', stop: 'Streaming beenden', copy: 'Antwort kopieren', voice: 'Sprachmodus starten', box: 'Mit ChatGPT chatten', said: 'ChatGPT sagte:' },
  ja: { send: 'プロンプトを送信', stop: 'ストリーミングの停止', copy: '回答をコピー', voice: '音声を開始', box: 'ChatGPT とチャット', said: 'ChatGPT:' },
  'zh-Hans': { send: '发送提示', stop: '停止流式传输', copy: '复制回复', voice: '开始语音', box: '与 ChatGPT 聊天', said: 'ChatGPT 说：' },
};
