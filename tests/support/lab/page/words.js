// The words of the site's controls, by language: what a person of that language reads.
export const WORDS = {
  en: { send: 'Send prompt', stop: 'Stop streaming', copy: 'Copy response', voice: 'Start Voice', box: 'Chat with ChatGPT', said: 'ChatGPT said:' },
  de: { send: 'Aufforderung senden', stop: 'Antwort stoppen', copy: 'Antwort kopieren', voice: 'Sprachmodus starten', box: 'Mit ChatGPT chatten', said: 'ChatGPT sagte:' },
  ja: { send: 'プロンプトを送信する', stop: '回答を停止', copy: '回答をコピーする', voice: '音声を開始', box: 'ChatGPT とチャットする', said: 'ChatGPT:' },
  'zh-Hans': { send: '发送提示', stop: '停止回答', copy: '复制回复', voice: '开始语音', box: '有问题，尽管问', said: 'ChatGPT 说：' },
};
